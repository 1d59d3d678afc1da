"""Stores points so that an erasure that is under way, here or at another store process, wins.

A namespace has one write at a time in this process (:class:`NamespaceLocks`), and each begins before it reads anything.
What a store of points, a removal or an erasure means for readers of the feed stands at the end.
"""

import asyncio
import contextlib
import functools
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from memloop.wire.changes import Change, ChangeType
from memloop.wire.errors import Conflict, DependencyError, Erased, Unavailable
from memloop.wire.memory import Namespace
from memloop_state.store.erasures import Again, Begun, Claim, Erasures, Refusal, Unsettled
from memloop_state.store.settling import Settlings
from memloop_state.store.tenants import ChangeFeed
from memory_store.items.documents import newest_decision, within
from memory_store.items.settling import Settler
from memory_store.vectors.filters import Ids, all_of
from memory_store.vectors.live import Gate
from memory_store.vectors.port import Collection, Found, Payload, Point

_PATIENCE_S = 10.0

Tries: TypeAlias = dict[Claim, Begun | Refusal]
"""What became of each claim of a write when it first began, over all of its tries."""
_first_try: Final[ContextVar[Tries | None]] = ContextVar("first_try", default=None)

P = ParamSpec("P")
R = TypeVar("R")


class NamespaceLocks:
    """Locks by lane; one without users is dropped. While the gate is closed, no lock is taken."""

    def __init__(self, gate: Gate | None = None) -> None:
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
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
                await stack.enter_async_context(self._locks.setdefault(name, asyncio.Lock()))
            yield


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

    def __init__(self, vectors: Collection, erasures: Erasures, feed: ChangeFeed) -> None:
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
        opened = await self._erasures.open(begun, uuid.uuid4().hex, [point.id for point in points])
        refused = _refused(begun, opened.refusals)
        if all(opened.refusals):
            return refused
        kept = [point for point in points if _owner(point) not in refused] if refused else points
        if kept:
            # Store the points; their changes are published while an erasure still waits for the write
            made = by_tenant(stored_changes(kept))
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
        stale = [point for point in kept if _owner(point) in erased] if erased else []
        for point in stale:  # stored later than an erasure waits
            await self._vectors.delete(where=all_of([within(_owner(point)), Ids((point.id,))]))
        if stale:
            await self._feed.publish(by_tenant(retracted_changes(stale)))
        return late | refused


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


_UNTOLD: Final = {"overtaken", "raw turn"}
"""A version that was overtaken is named by the one that did; raw turns are not in the feed."""
_TOLD: Final[Mapping[str, ChangeType]] = {
    "new fact": "memory.added",
    "imported": "memory.added",
    "recovered": "memory.added",
    "deleted": "memory.deleted",
}
"""By the cause of a version's newest decision; any other is an update."""
_RAW: Final = "RawTurn"


def stored_changes(points: Iterable[Point]) -> list[tuple[str, Change]]:
    """Return the changes, with their tenants, of points that are stored: what the newest decision on each means.

    Raw turns have none, nor has a version that another one overtook or split.
    """
    made: list[tuple[str, Change]] = []
    for point in points:
        is_raw = point.payload["memory_type"] == _RAW
        newest = None if is_raw else newest_decision(point.payload.get("decisions"))
        if newest is None or newest.cause in _UNTOLD:
            continue
        if newest.cause == "imported" or newest.at == datetime.fromisoformat(str(point.payload["updated_at"])):
            tenant = str(point.payload["tenant"])
            kind: ChangeType = _TOLD.get(newest.cause, "memory.updated")
            made.append((tenant, _of(point.id, point.payload, kind, newest.cause, newest.at)))
    return made


def retracted_changes(points: Iterable[Point]) -> list[tuple[str, Change]]:
    """Return the changes for stored points that an erasure has deleted."""
    return [
        (tenant, change.model_copy(update={"type": "memory.deleted", "reason": "erased", "supersedes": None}))
        for tenant, change in stored_changes(points)
    ]


def expired_changes(found: Sequence[Found], moment: datetime) -> list[tuple[str, Change]]:
    """Return the changes of live memories that are removed at their end."""
    live = [one for one in found if one.payload["memory_type"] != _RAW and one.payload["status"] == "activated"]
    return [(str(one.payload["tenant"]), _of(one.id, one.payload, "memory.deleted", "expired", moment)) for one in live]


def by_tenant(changes: Sequence[tuple[str, Change]]) -> dict[str, list[Change]]:
    """Group changes by their tenant, in order."""
    groups: dict[str, list[Change]] = defaultdict(list)
    for tenant, change in changes:
        groups[tenant].append(change)
    return groups


def erasure_changes(namespace: Namespace, moment: datetime) -> list[tuple[str, Change]]:
    ids = namespace.model_dump(include={"user_id", "agent_id", "run_id"})
    return [(namespace.tenant, Change(type="memory.erased", at=moment, reason="erased", **ids))]


def _of(item_id: str, payload: Payload, kind: ChangeType, reason: str, at: datetime) -> Change:
    """Build the change from the fields that it has: the whole memory would be parsed for each written point."""
    ids = {name: payload.get(name) for name in ("version", "user_id", "agent_id", "run_id")}
    supersedes = payload.get("supersedes") if kind == "memory.updated" else None
    return Change.model_validate(
        {"type": kind, "at": at, "reason": reason, "memory_id": item_id, "supersedes": supersedes, **ids}
    )
