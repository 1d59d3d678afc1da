"""Stores points so that an erasure that is under way, here or at another store process, wins."""

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from memloop.wire.errors import Conflict, DependencyError, Erased, MemloopError, Unavailable
from memloop.wire.memory import Namespace
from memloop_state.store.erasures import Again, Begun, Claim, Erasures, Refusal, Unsettled, write_name
from memloop_state.store.feed import ChangeFeed, by_tenant
from memloop_state.store.settling import Settlings
from memory_store.items import changes
from memory_store.items.documents import within
from memory_store.vectors.filters import Ids, all_of
from memory_store.vectors.port import Point, VectorStore

_EVERY_S: Final = 2.0
_AT_ONCE: Final = 64
_BATCH: Final = 64
_log = logging.getLogger(__name__)


class Settler:
    """Gives every copy of a user's points what one of them has, for the points of writes that were refused."""

    def __init__(self, vectors: VectorStore, settlings: Settlings) -> None:
        self._vectors = vectors
        self._settlings = settlings

    async def settle(self, namespace: Namespace) -> None:
        """Settle all writes of a user. Raises ``Unavailable`` or ``DependencyError`` where Qdrant refuses that too."""
        taken = await self._settlings.take(namespace)
        if taken is None:
            return
        try:
            owner = Namespace(tenant=taken.namespace.tenant, user_id=taken.namespace.user_id)
            ids = taken.ids
            for at in range(0, len(ids), _BATCH):
                batch = ids[at : at + _BATCH]
                found = await self._vectors.get(batch, where=within(owner))
                absent = tuple(set(batch) - {point.id for point in found})
                if found:
                    await self._vectors.upsert(found)
                if absent:
                    await self._vectors.delete(where=all_of([within(owner), Ids(absent)]))
        except BaseException:
            with contextlib.suppress(MemloopError):
                await self._settlings.failed(taken)
            raise
        await self._settlings.done(taken)
        _log.info("%d points of %d refused writes are settled", len(taken.ids), len(taken.writes))

    async def keep_settling(self, opened: asyncio.Event, *, every_s: float = _EVERY_S) -> None:
        """Settle for ever what no repeated write settles, once the vectors are open."""
        await opened.wait()
        while True:
            with contextlib.suppress(MemloopError):
                for namespace in await self._settlings.some(_AT_ONCE):
                    try:
                        await self.settle(namespace)
                    except MemloopError as error:
                        _log.debug("a refused write is not settled: %s", error.message)
            await asyncio.sleep(every_s)


_PATIENCE_S = 10.0

Tries: TypeAlias = dict[Claim, Begun | Refusal]
"""What became of each claim of a write when it first began, over all of its tries."""
_first_try: Final[ContextVar[Tries | None]] = ContextVar("first_try", default=None)

P = ParamSpec("P")
R = TypeVar("R")


def repeated_when_moved(write: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Repeats a write that met a change of the collection in service, on the collection that is in service then.

    Repeats one that met the settling of an earlier write, too.

    It decorates what takes the namespace's lock, not what holds it: the change waits until the lock is free. An erasure
    between two tries refuses the write: it began with the first.
    """

    @functools.wraps(write)
    async def repeated(*args: P.args, **kwargs: P.kwargs) -> R:
        deadline = time.monotonic() + _PATIENCE_S
        outer = _first_try.set({})
        try:
            while True:
                try:
                    return await write(*args, **kwargs)
                except Again as moved:
                    if time.monotonic() > deadline:
                        raise
                    await moved.catch_up()
        finally:
            _first_try.reset(outer)

    return repeated


def tries() -> Tries:
    """Return the tries of the running write, for ``as_one_write``."""
    found = _first_try.get()
    return {} if found is None else found


@contextlib.contextmanager
def as_one_write(each: Sequence[Tries]) -> Generator[None]:
    """Begin the claims of several writes as one, in the block; what becomes of them is noted for each write."""
    joined: Tries = {claim: first for one in each for claim, first in one.items()}
    outer = _first_try.set(joined)
    try:
        yield
    finally:
        _first_try.reset(outer)
        for one in each:
            one.update(joined)


class GuardedStore:
    """Every upsert of memories goes through here: :meth:`begin` before anything is read, :meth:`store` at the end."""

    def __init__(self, vectors: VectorStore, erasures: Erasures, feed: ChangeFeed) -> None:
        self._vectors = vectors
        self._feed = feed
        self._erasures = erasures
        self.settler = Settler(vectors, Settlings(erasures))

    async def begin(self, namespace: Namespace, *, began: int | None = None, adds: bool = True) -> Begun:
        """Begin a write without a lane. Raises ``Conflict`` while the namespace is erased, and if it was since then.

        ``adds`` False: one that may take of the room that is kept, such as a deletion.
        """
        [begun] = await self.begin_all([Claim(namespace, began=began)], adds=adds)
        if not isinstance(begun, Begun):
            raise begun
        return begun

    async def begin_all(self, claims: Sequence[Claim], *, adds: bool = True) -> Sequence[Begun | Refusal]:
        """Begin one write to several namespaces; some may be refused. Settles earlier writes that Qdrant refused.

        Raises ``Unavailable`` where there is no room for what a write adds.
        """
        if adds:
            await self._vectors.admit()
        try:
            answers = await self._erasures.begin(claims) if claims else ()
        except Unsettled as error:
            await self.settler.settle(error.namespace)
            raise
        return [_as_at_first(claim, answer) for claim, answer in zip(claims, answers, strict=True)]

    async def store(self, begun: Begun, points: Sequence[Point]) -> None:
        """Store points of the write's namespace in one operation. Raises ``Conflict`` if it was erased meanwhile."""
        for refusal in (await self.store_all([begun], points)).values():
            raise refusal

    async def store_all(self, begun: Sequence[Begun], points: Sequence[Point]) -> dict[Namespace, Refusal]:
        """Store the points in one operation, without those of namespaces that are refused by now; the refusals.

        Raises ``Again`` before anything is stored.
        """
        if not points:
            return {}
        opened = await self._erasures.open(begun, write_name(), [point.id for point in points])
        refused = _refused(begun, opened.refusals)
        if all(opened.refusals):
            return refused
        kept = [point for point in points if _owner(point) not in refused] if refused else points
        if kept:
            # Store the points; their changes are published while an erasure still waits for the write
            made = by_tenant(changes.stored(kept))
            try:
                note = await self._feed.note(made)
            except Unavailable:
                with contextlib.suppress(Unavailable):
                    await self._erasures.close(opened)
                raise
            try:
                await self._vectors.upsert(kept)
            except DependencyError:
                with contextlib.suppress(Unavailable):
                    await self._erasures.refuse(opened)
                raise
            with contextlib.suppress(Unavailable):  # the note is published later
                await self._feed.publish(made, note=note)
        late = _refused(begun, await self._erasures.close(opened))
        erased = {space: one for space, one in late.items() if isinstance(one, Conflict)}
        await self._take_back([point for point in kept if _owner(point) in erased] if erased else ())
        return late | refused

    async def _take_back(self, points: Sequence[Point]) -> None:
        """Delete points that were stored later than an erasure waits."""
        for point in points:
            where = all_of([within(_owner(point)), Ids((point.id,))])
            await self._vectors.delete(where=where)
        if points:
            await self._feed.publish(by_tenant(changes.retracted(points)))


def _as_at_first(claim: Claim, answer: Begun | Refusal) -> Begun | Refusal:
    """Refuse a claim that the first try of the same write lost, or began before an erasure."""
    tries = _first_try.get()
    first = answer if tries is None else tries.setdefault(claim, answer)
    if not isinstance(answer, Begun) or not isinstance(first, Begun):
        return first if isinstance(answer, Begun) else answer
    return answer if first.mark == answer.mark else Erased()


def _refused(begun: Sequence[Begun], answers: Sequence[Refusal | None]) -> dict[Namespace, Refusal]:
    pairs = zip(begun, answers, strict=True)
    return {one.claim.namespace: answer for one, answer in pairs if answer is not None}


def _owner(point: Point) -> Namespace:
    fields = ("tenant", "user_id", "agent_id", "run_id")
    return Namespace.model_validate({name: point.payload.get(name) for name in fields})
