"""Tasks that run for ever beside the work, and their end."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

_CANCEL_AGAIN_S: Final = 0.2


@asynccontextmanager
async def alongside(*chores: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run them meanwhile; they are over on leaving."""
    tasks = {asyncio.create_task(chore) for chore in chores}
    try:
        yield
    finally:
        await ended(tasks)


async def ended(tasks: "set[asyncio.Task[None]]") -> None:
    """Cancel them until they are over: a Redis connection that is just being made swallows a first cancellation."""
    while tasks := {task for task in tasks if not task.done()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CANCEL_AGAIN_S)
