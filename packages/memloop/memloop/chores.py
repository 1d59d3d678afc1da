"""What one does with tasks of asyncio: runs chores beside a block, computes in a thread, and waits with patience.

An event loop that is held up, by work or because a container has used up its share of the cores, finds two things when
it goes on: the answer that came meanwhile, and the timer that has run out. ``asyncio.timeout`` then drops the answer
and blames the other side. :func:`patient` leaves out the time in which this process could not read the answer.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final, TypeVar

from memloop.wire.errors import DependencyError

_CANCEL_AGAIN_S: Final = 0.2
_INLINE_CHARS: Final = 20_000
"""Texts up to this length are counted or redacted in about 2 ms."""
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
async def renewed(renew: Callable[[], Awaitable[None]], *, every_s: float) -> AsyncGenerator[None]:
    """Renew a lease during the block. A renewal that the state does not take is made up for by the next one."""

    async def renew_again() -> None:
        while True:
            await asyncio.sleep(every_s)
            with suppress(DependencyError):
                await renew()

    async with alongside(renew_again()):
        yield


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
