"""Locks a namespace for one write at a time in this process, and does the work of several callers at once.

Databases commit transactions in such groups.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from memory_store.vectors.live import Gate

_One = TypeVar("_One")
_Result = TypeVar("_Result")
_Work: TypeAlias = Callable[[Sequence[_One]], Awaitable[Sequence[_Result | Exception]]]


@dataclass(slots=True)
class _Lock:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class NamespaceLocks:
    """Locks by lane; a lock without users is dropped. While the gate is closed, no lock is taken."""

    def __init__(self, gate: Gate | None = None) -> None:
        self._locks: dict[str, _Lock] = {}
        self._gate = gate or Gate()

    def __len__(self) -> int:
        return len(self._locks)

    @contextlib.asynccontextmanager
    async def hold(self, *names: str) -> AsyncGenerator[None]:
        """Enters the gate once, then waits for the lanes in one order and keeps them for the block.

        Without a name it only keeps the gate open.
        """
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._gate.shared())
            for name in sorted(set(names)):
                await stack.enter_async_context(self._hold(name))
            yield

    @contextlib.asynccontextmanager
    async def _hold(self, name: str) -> AsyncGenerator[None]:
        held = self._locks.setdefault(name, _Lock())
        held.users += 1
        try:
            async with held.lock:
                yield
        finally:
            held.users -= 1
            if held.users == 0:
                del self._locks[name]


class Groups(Generic[_One, _Result]):
    """What arrives while ``under_way`` groups are worked on waits, and forms the next group of at most ``most``.

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
