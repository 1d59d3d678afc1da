"""Timeouts for answers, without the time in which this process could not read them.

An event loop that is held up, by work or because a container has used up its share of the cores, finds two things when
it goes on: the answer that came meanwhile, and the timer that has run out. ``asyncio.timeout`` then drops the answer
and blames the other side.
"""

import asyncio
from types import TracebackType
from typing import Final

_LATE_S: Final = 0.05
"""A timer that fires later than this shows a loop that was held up."""


class Patience:
    """Cancels the block at ``deadline``, a time of the loop, and raises TimeoutError.

    If the loop reaches it late, the block gets as long again as the loop was late, at least to read what has come; at
    most what it had at first, and once. It does the work of ``asyncio.timeout`` too, which took half of its time.
    """

    __slots__ = ("_before", "_deadline", "_expired", "_loop", "_most_s", "_task", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float, most_s: float) -> None:
        self._loop = loop
        self._deadline = deadline
        self._most_s = most_s
        self._expired = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a block with a deadline needs a running task")
        self._task, self._before = task, task.cancelling()
        self._timer: asyncio.Handle = self._loop.call_at(self._deadline, self._check)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._expired and self._task.uncancel() <= self._before and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def _check(self) -> None:
        late_s, loop = self._loop.time() - self._deadline, self._loop
        self._timer = (
            loop.call_later(min(late_s, self._most_s), self._end) if late_s > _LATE_S else loop.call_soon(self._end)
        )

    def _end(self) -> None:
        """Let the loop look at the network once more."""
        self._timer = self._loop.call_soon(self._expire)

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()


def patient_until(deadline: float) -> Patience:
    """Return a block that ends at that time of the loop."""
    loop = asyncio.get_running_loop()
    return Patience(loop, deadline, max(0.0, deadline - loop.time()))


def patient(seconds: float) -> Patience:
    """Return a block that ends after ``seconds``."""
    loop = asyncio.get_running_loop()
    return Patience(loop, loop.time() + seconds, max(0.0, seconds))
