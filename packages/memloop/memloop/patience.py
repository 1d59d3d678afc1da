"""Timeouts for answers, without the time in which this process could not read them.

An event loop that is held up, by work or because a container has used up its share of the cores, finds two things when
it goes on: the answer that came meanwhile, and the timer that has run out. ``asyncio.timeout`` then drops the answer
and blames the other side.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

_LATE_S: Final = 0.05
"""A timer that fires later than this shows a loop that was held up."""


@asynccontextmanager
async def patient_until(deadline: float) -> AsyncGenerator[None]:
    """Cancel the block at that time of the loop and raise TimeoutError.

    If the loop reaches it late, the block gets as long again as the loop was late, at least to read what has come; at
    most what it had at first, and once.
    """
    loop = asyncio.get_running_loop()
    most_s = max(0.0, deadline - loop.time())

    def check() -> None:
        nonlocal timer
        late_s = loop.time() - deadline
        timer = loop.call_later(min(late_s, most_s), end) if late_s > _LATE_S else loop.call_soon(end)

    def end() -> None:
        limit.reschedule(loop.time())

    timer: asyncio.Handle = loop.call_at(deadline, check)
    try:
        async with asyncio.timeout(None) as limit:
            yield
    finally:
        timer.cancel()


def patient(seconds: float) -> AbstractAsyncContextManager[None]:
    """Cancel the block after ``seconds`` as ``patient_until`` does."""
    return patient_until(asyncio.get_running_loop().time() + seconds)
