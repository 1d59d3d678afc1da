"""Runs background tasks and cancels them at the end; computes long things in a thread."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

_CANCEL_AGAIN_S: Final = 0.2
_INLINE_CHARS: Final = 20_000
"""Texts up to this length are counted or redacted in about 2 ms."""
INLINE_BYTES: Final = 16_384
"""Bodies up to this length are parsed on the event loop: a thread would take longer."""
_BODIES: Final = ThreadPoolExecutor(1, "bodies")
"""A second thread would only contend for the interpreter, and hold the objects of a second body."""
_LONG_S: Final = 0.004
_REST: Final = 3.0
_MOST_REST_S: Final = 0.5
_Result = TypeVar("_Result")


@asynccontextmanager
async def alongside(*chores: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run the coroutines in the background; cancel them and wait on exit."""
    tasks = {asyncio.create_task(chore) for chore in chores}
    try:
        yield
    finally:
        await ended(tasks)


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, _Result]) -> "AsyncGenerator[asyncio.Task[_Result]]":
    """Run the coroutine while the block does something else; cancel it if the block leaves before its end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        await ended({task})


async def ended(tasks: "set[asyncio.Task[Any]]") -> None:
    """Cancel the tasks until all have ended: a connection being opened may swallow the first cancellation."""
    while tasks := {task for task in tasks if not task.done()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CANCEL_AGAIN_S)


async def computed(work: Callable[[], _Result], *, chars: int) -> _Result:
    """Compute with so many characters of text: on the event loop if they are few, else in a thread."""
    return work() if chars <= _INLINE_CHARS else await asyncio.to_thread(work)


async def parsed(work: Callable[[], _Result], *, size: int) -> _Result:
    """Parse a body of so many bytes: on the event loop if it is short, else in the thread of long ones.

    A parser holds the interpreter as long as it takes. So the thread rests after a long one, three times its length:
    the event loop meets a held interpreter in a quarter of its turns at most.
    """
    if size <= INLINE_BYTES:
        return work()

    def rested() -> _Result:
        began = time.thread_time()
        try:
            return work()
        finally:
            if (took_s := time.thread_time() - began) > _LONG_S:
                time.sleep(min(_REST * took_s, _MOST_REST_S))

    return await asyncio.get_running_loop().run_in_executor(_BODIES, rested)
