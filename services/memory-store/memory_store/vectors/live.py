"""The collection in service: the same for both adapters, and what a copy needs to take its place."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from memloop.wire.errors import Unavailable
from memory_store.vectors.filters import Condition
from memory_store.vectors.paging import every_id
from memory_store.vectors.port import Collection, Collections, Found, Page, Placed, Point, Query, Ranked
from memory_store.vectors.schema import CollectionSpec

_RETRY_AFTER_S = 2.0


class LiveCollection:
    """``VectorStore``: hands everything on to one collection, which another one can replace between two calls."""

    def __init__(self, collections: Collections) -> None:
        self.collections = collections
        self.opened = asyncio.Event()
        self._current: Collection | None = None
        self._changed: dict[str, None] | None = None
        self._spec: CollectionSpec | None = None

    async def open(self, spec: CollectionSpec) -> None:
        """Open the collection in service, or make the first."""
        self._spec = spec
        name = spec.choose(await self.collections.names(), await self.collections.serving())
        current = await self.collections.open(spec, name)
        if await self.collections.serving() != name:
            await self.collections.serve(name)
        self._current = current
        self.opened.set()

    async def close(self) -> None:
        """Make everything durable and let go."""
        if self._current:
            await self._current.close()
            self._current = None
        await self.collections.close()

    async def archive(self) -> Path:
        """The collection in service as a new tar file. The caller has paused writes. Raises ``NotSupported``."""
        return await self.collections.archive(self._now)

    @property
    def name(self) -> str:
        """Of the collection in service."""
        return self._now.name

    @property
    def _now(self) -> Collection:
        if self._current is None:
            raise _not_open()
        return self._current

    @property
    def spec(self) -> CollectionSpec:
        """The model and dimension of its vectors."""
        if self._spec is None:
            raise _not_open()
        return self._spec

    async def replace(self, other: Collection, spec: CollectionSpec) -> Collection:
        """Put the other one in service; the one that was. The caller has paused writes and searches."""
        await self.collections.serve(other.name)
        self._spec = spec
        before, self._current = self._now, other
        return before

    @contextmanager
    def changes(self) -> Generator[dict[str, None]]:
        """The ids of points that are written or deleted meanwhile, in order; the caller takes out what it has seen."""
        self._changed = {}
        try:
            yield self._changed
        finally:
            self._changed = None

    async def ping(self) -> None:
        """Raise if it cannot answer."""
        await self._now.ping()

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points."""
        await self._now.upsert(points)
        self._note([point.id for point in points])

    async def delete(self, *, where: Condition) -> None:
        """Remove the points."""
        ids = [] if self._changed is None else await every_id(self._now, where)
        await self._now.delete(where=where)
        self._note(ids)

    async def get(self, ids: Sequence[str], *, where: Condition) -> Sequence[Point]:
        """Points by id."""
        return await self._now.get(ids, where=where)

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        """A page in the order of ids."""
        return await self._now.scroll(where=where, limit=limit, start_id=start_id)

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        """Several rankings at once, without payloads."""
        return await self._now.rank(queries, where=where, corpus=corpus, limit=limit)

    async def newest(self, *, where: Condition, limit: int) -> Sequence[Found]:
        """A page by time."""
        return await self._now.newest(where=where, limit=limit)

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        """Ids by place."""
        return await self._now.placed(where=where, limit=limit)

    async def values(self, field: str, *, where: Condition, limit: int) -> Mapping[str, int]:
        """Counts by value."""
        return await self._now.values(field, where=where, limit=limit)

    async def nearest(self, dense: tuple[float, ...], *, where: Condition, limit: int) -> Sequence[Found]:
        """The points of the highest cosine."""
        return await self._now.nearest(dense, where=where, limit=limit)

    async def count(self, *, where: Condition) -> int:
        """How many points, exactly."""
        return await self._now.count(where=where)

    def _note(self, ids: Sequence[str]) -> None:
        if self._changed is not None:
            self._changed.update(dict.fromkeys(ids))


def _not_open() -> Unavailable:
    return Unavailable("The vectors are not open.", code="vectors_not_open", retry_after_s=_RETRY_AFTER_S)
