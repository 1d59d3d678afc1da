"""Runs endless background tasks and cancels them at the end."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

_CANCEL_AGAIN_S: Final = 0.2


@asynccontextmanager
async def alongside(*chores: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run the coroutines in the background; cancel them and wait on exit."""
    tasks = {asyncio.create_task(chore) for chore in chores}
    try:
        yield
    finally:
        await ended(tasks)


async def ended(tasks: "set[asyncio.Task[None]]") -> None:
    """Cancel the tasks until all have ended: a Redis connection being opened swallows the first cancellation."""
    while tasks := {task for task in tasks if not task.done()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CANCEL_AGAIN_S)
