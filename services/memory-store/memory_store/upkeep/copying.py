"""Bringing a second collection to the contents of the one in service, while that one is written to, and swapping them.

The copy rewrites each payload as the present version does, so that memories from before an upgrade get its new fields.
Nothing about a copy is stored but its target: points whose payload is there already are left alone. So a copy that was
killed goes on where it was when it is started again, and one that is older than the collection in service is caught up.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from pydantic import AwareDatetime, BaseModel

from memloop.chores import renewed
from memloop.wire.errors import Timeout, Unavailable
from memloop.wire.memory import Namespace
from memloop_state.store.service import COPY_LEASE_S, ServiceRecord
from memory_store.items.documents import from_payload, pages, to_payload, within
from memory_store.upkeep.membership import Membership
from memory_store.vectors.filters import AllOf, Condition, Ids
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.port import Collection, Point

Kind = Literal["reembed", "flush"]
Status = Literal["running", "completed", "failed"]


class Progress(BaseModel):
    """``done`` counts points that the target has, of ``total`` when the copy began."""

    kind: Kind
    target: str
    status: Status = "running"
    done: int = 0
    total: int = 0
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    error: str | None = None


Transform: TypeAlias = Callable[[Sequence[Point]], Awaitable[Sequence[Point]]]
"""The points as the target keeps them: with the same ids and payloads."""

_EVERYTHING = AllOf(())
_BATCH: Final = 64
_RENEW_S: Final = 1.0
_PREPARED_S: Final = 300.0
"""Stores may have to load a model."""


class Lease:
    """The right to copy, for a few seconds at a time."""

    def __init__(self, record: ServiceRecord, copy: str, progress: Progress) -> None:
        self.copy = copy
        self._record = record
        self._progress = progress
        self._until = time.monotonic() + COPY_LEASE_S

    def renewed(self) -> AbstractAsyncContextManager[None]:
        """Renews it during the block."""
        return renewed(self._renew, every_s=_RENEW_S)

    async def hold(self) -> None:
        """Raise ``Unavailable`` when another store has ended the copy. Nothing is written then."""
        if time.monotonic() < self._until:
            return
        await self._renew()

    async def _renew(self) -> None:
        sent = time.monotonic()
        if not await self._record.renew(self.copy, self._progress.model_dump_json()):
            raise copy_lost()
        self._until = sent + COPY_LEASE_S


class Copy:
    """One copy, whose lease is taken. No write is let in while the last changes are caught up and the two swapped.

    ``shut_s`` is the most that writes wait for those before them; then the copy tries again.
    """

    def __init__(
        self,
        live: LiveCollection,
        membership: Membership,
        lease: Lease,
        *,
        transform: Transform | None,
        shut_s: float,
    ) -> None:
        self._live = live
        self._record = membership.record
        self._membership = membership
        self._lease = lease
        self._transform = transform
        self._shut_s = shut_s
        self._copies_agree = True

    async def run(self, target: Collection, progress: Progress) -> None:
        """Copy and decide on the swap; the gates are shut then. Raises ``Unavailable`` when the lease is lost."""
        progress.total = await self._live.count(where=_EVERYTHING)
        # Have every change noted that may come after the first read, and wait for those that are not
        gen = self._membership.gen
        await self._record.align(gen)
        names = await self._record.note(self._lease.copy, gen)
        if names is None:
            raise copy_lost()
        while await self._record.remaining(names):
            await self._membership.pause()
        left_over = await _every_id(target, _EVERYTHING)
        async for page in pages(self._live, _EVERYTHING, size=_BATCH):
            await self._bring(target, [found.id for found in page.found])
            progress.done += len(page.found)
            await self._catch_up(target)
            await asyncio.sleep(0)
        for at in range(0, len(left_over), _BATCH):
            await self._bring(target, left_over[at : at + _BATCH])
        # Wait until every store that is alive can turn to the target at once
        deadline = time.monotonic() + _PREPARED_S
        while not await self._membership.everybody(prepared=self._lease.copy):
            if time.monotonic() > deadline:
                raise Unavailable(f"A store did not open {target.name} within {_PREPARED_S:g} s.")
            await self._catch_up(target)
            await self._membership.pause()
        await self._shut(target)
        if not await self._record.decide(self._lease.copy):
            raise copy_lost()

    async def _shut(self, target: Collection) -> None:
        """Bring the last changes while nothing is written."""
        while True:
            while await self._catch_up(target) >= _BATCH:
                pass
            await self._hold(await self._record.shut(self._lease.copy, shut=True))
            if await self._emptied():
                break
            await self._hold(await self._record.shut(self._lease.copy, shut=False))
            await asyncio.sleep(self._shut_s)
        while await self._catch_up(target):
            pass

    async def _emptied(self) -> bool:
        """Whether the changes that are under way end soon."""
        deadline = time.monotonic() + self._shut_s
        while (count := await self._record.under_way(self._lease.copy)) != 0:
            if count is None:
                raise copy_lost()
            if time.monotonic() > deadline:
                return False
            await self._membership.pause()
        return True

    async def _hold(self, has: bool) -> None:
        await self._lease.hold()
        if not has:
            raise copy_lost()

    async def _catch_up(self, target: Collection) -> int:
        """Bring some of what has changed since; the number of changes."""
        notes = await self._record.take(_BATCH)
        ids = dict[str, None]()
        for note in notes:  # of a write's points, or of an erased scope
            written = note.startswith("[")
            where = within(Namespace.model_validate_json(note)) if not written else None
            ids |= dict.fromkeys(json.loads(note) if where is None else await _every_id(target, where))
        each = list(ids)
        for at in range(0, len(each), _BATCH):
            await self._bring(target, each[at : at + _BATCH])
        return len(notes)

    async def _bring(self, target: Collection, ids: Sequence[str]) -> None:
        """Make the target agree about these points, as they are in service now."""
        if not ids:
            return
        points = [  # with the payload that this version writes; an older one may have left fields out
            replace(point, payload=to_payload(from_payload(point.id, point.payload)))
            for point in await self._live.get(ids, where=_EVERYTHING)
        ]
        try:
            found = await target.get(ids, where=_EVERYTHING, agreed=True) if self._copies_agree else ()
        except (Unavailable, Timeout):
            self._copies_agree, found = False, ()
        known = {one.id: one.payload for one in found}  # what every copy in the target has
        fresh = [point for point in points if known.get(point.id) != point.payload]
        gone = tuple(set(ids) - {point.id for point in points})
        made = await self._transform(fresh) if fresh and self._transform else fresh
        await self._lease.hold()
        if made:
            await self._live.admit()
            await target.upsert(made)
        if gone:
            await target.delete(where=Ids(gone))


async def _every_id(collection: Collection, where: Condition) -> list[str]:
    return [found.id async for page in pages(collection, where) for found in page.found]


def copy_lost() -> Unavailable:
    """Return the error of a copy that another store may have ended."""
    return Unavailable("The copy stood still for too long; begin it again.", code="copy_lost", retry_after_s=1.0)
