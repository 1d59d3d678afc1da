"""What one does with tasks of asyncio: chores beside a block, work in a thread or for a group of callers, patience.

An event loop that is held up, by work or because a container has used up its share of the cores, finds two things when
it goes on: the answer that came meanwhile, and the timer that has run out. ``asyncio.timeout`` then drops the answer
and blames the other side. :func:`patient` leaves out the time in which this process could not read the answer.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final, Generic, TypeAlias, TypeVar

from memloop.wire.errors import DependencyError

_CANCEL_AGAIN_S: Final = 0.2
_INLINE_CHARS: Final = 20_000
"""Texts up to this length are counted or redacted in about 2 ms."""
_One = TypeVar("_One")
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


async def watched(
    work: Coroutine[Any, Any, _Result], *, check: Callable[[], Awaitable[None]], every_s: float
) -> _Result:
    """Do the work and call ``check`` now and then; its error stops the work and is raised.

    A check that cannot reach the state says nothing: the work goes on. Returns or raises once the work has ended.
    """
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=every_s))[0]:
            with suppress(DependencyError):
                await check()
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        del task  # it holds the work's error, whose traceback holds this frame


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


_Work: TypeAlias = Callable[[Sequence[_One]], Awaitable[Sequence[_Result | Exception]]]


class Groups(Generic[_One, _Result]):
    """Does the work of several callers at once, as databases commit transactions in groups.

    What arrives while ``under_way`` groups are worked on waits, and forms the next group of at most ``most``.

    The work of a caller that is alone begins in the same turn of the event loop. ``work`` returns a result, or the
    error that its caller gets, for each of a group.
    """

    def __init__(self, work: "_Work[_One, _Result]", *, under_way: int, most: int) -> None:
        self._work = work
        self._under_way = under_way
        self._most = most
        self._waiting: deque[tuple[_One, asyncio.Future[_Result | Exception]]] = deque()
        self._groups: set[asyncio.Task[None]] = set()
        self._begins = False

    async def join(self, one: _One) -> _Result:
        """Return its result. Raises its error.

        A caller that is cancelled stays until the work of its group has ended: it may hold what the work needs.
        """
        reply: asyncio.Future[_Result | Exception] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, reply))
        self._begin_soon()
        try:
            result = await asyncio.shield(reply)
        except asyncio.CancelledError:
            if (one, reply) in self._waiting:
                self._waiting.remove((one, reply))
            else:
                await asyncio.wait({reply})
            raise
        if isinstance(result, Exception):
            raise result
        return result

    def _begin_soon(self) -> None:
        """Begin after the callbacks that are ready now: callers among them join the group."""
        if not self._begins and self._waiting and len(self._groups) < self._under_way:
            self._begins = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._begins = False
        if not self._waiting:
            return
        group = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
        task = asyncio.create_task(self._worked(group), name="group")
        self._groups.add(task)
        task.add_done_callback(self._ended)
        self._begin_soon()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._groups.discard(task)
        self._begin_soon()

    async def _worked(self, group: "Sequence[tuple[_One, asyncio.Future[_Result | Exception]]]") -> None:
        try:
            results: Sequence[_Result | Exception] = await self._work([one for one, _ in group])
        except Exception as error:  # noqa: BLE001 - whatever the work raises belongs to those who wait for it
            results = [error] * len(group)
        except BaseException:
            for _, reply in group:
                reply.cancel()
            raise
        for (_, reply), result in zip(group, results, strict=True):
            reply.set_result(result)


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
