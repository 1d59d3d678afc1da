"""Bringing a second collection to the contents of the one in service, while that one is written to, and swapping them.

The copy rewrites each payload as the present version does, so that memories from before an upgrade get its new fields.
Nothing about a copy is stored but its target: points whose payload is there already are left alone. So a copy that was
killed goes on where it was when it is started again, and one that is older than the collection in service is caught up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from memory_store.items.documents import from_payload, to_payload
from memory_store.vectors.filters import AllOf, Ids
from memory_store.vectors.gate import Gate
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.paging import every_id, pages
from memory_store.vectors.port import Collection, Point
from memory_store.vectors.schema import CollectionSpec

Transform: TypeAlias = Callable[[Sequence[Point]], Awaitable[Sequence[Point]]]
"""The points as the target keeps them: with the same ids and payloads."""

_EVERYTHING = AllOf(())
_BATCH = 64


@dataclass
class Progress:
    """Where a copy stands. ``done`` counts points that the target has, of ``total`` when it began."""

    kind: Literal["reembed", "flush"]
    target: str
    started_at: datetime
    total: int = 0
    done: int = 0
    status: Literal["running", "completed", "failed"] = "running"
    ended_at: datetime | None = None
    error: str | None = None


class Copy:
    """One copy. ``gate`` lets nobody write or search while the last changes are caught up and the two are swapped."""

    def __init__(self, live: LiveCollection, gate: Gate, *, transform: Transform, progress: Progress) -> None:
        self._live = live
        self._gate = gate
        self._transform = transform
        self._progress = progress

    async def run(
        self, target: Collection, spec: CollectionSpec, *, swapped: Callable[[], None] = lambda: None
    ) -> Collection:
        """Copy, swap, call ``swapped`` before anybody works again; the collection that was in service, still open."""
        self._progress.total = await self._live.count(where=_EVERYTHING)
        with self._live.changes() as changed:
            left_over = await every_id(target, _EVERYTHING)
            await self._copy_all(target, changed)
            for at in range(0, len(left_over), _BATCH):
                await self._bring(target, left_over[at : at + _BATCH])
            while len(changed) > _BATCH:
                await self._catch_up(target, changed)
            async with self._gate.exclusive():
                while changed:
                    await self._catch_up(target, changed)
                before = await self._live.replace(target, spec)
                swapped()
                return before

    async def _copy_all(self, target: Collection, changed: dict[str, None]) -> None:
        async for page in pages(self._live, _EVERYTHING, size=_BATCH):
            await self._bring(target, [found.id for found in page.found])
            self._progress.done += len(page.found)
            await self._catch_up(target, changed)
            await asyncio.sleep(0)

    async def _catch_up(self, target: Collection, changed: dict[str, None]) -> None:
        """Bring a batch of what was written since; what is written to these points meanwhile is noted again."""
        ids = list(changed)[:_BATCH]
        for point_id in ids:
            del changed[point_id]
        await self._bring(target, ids)

    async def _bring(self, target: Collection, ids: Sequence[str]) -> None:
        """Make the target agree about these points, as they are in service now."""
        if not ids:
            return
        points = [_of_today(point) for point in await self._live.get(ids, where=_EVERYTHING)]
        known: Mapping[str, object] = {one.id: one.payload for one in await target.get(ids, where=_EVERYTHING)}
        fresh = [point for point in points if known.get(point.id) != point.payload]
        gone = tuple(known.keys() - {point.id for point in points})
        if fresh:
            await target.upsert(await self._transform(fresh))
        if gone:
            await target.delete(where=Ids(gone))


def _of_today(point: Point) -> Point:
    """Returns the point with the payload that the present version writes; an older version may have left fields out."""
    return replace(point, payload=to_payload(from_payload(point.id, point.payload)))
