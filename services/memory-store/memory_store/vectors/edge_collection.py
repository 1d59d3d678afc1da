"""A collection on one open shard of Qdrant Edge, and the room on its disk.

Every call but a flush takes well under a millisecond and holds the interpreter lock, so a thread would only add a hop:
calls run where they are awaited.

Edge maps its files, which have holes. A write into a hole takes a block of the disk. Where there is none, the kernel
ends the process with SIGBUS, which no code can catch. So there must be room before an operation begins.
"""

import contextlib
import json
import logging
import shutil
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import qdrant_edge as edge

from memloop.wire.errors import DependencyError, Unavailable
from memory_store.vectors.edge_counts import EdgeDamaged
from memory_store.vectors.edge_files import EdgeFlushes
from memory_store.vectors.edge_types import KnownPoints, from_edge, payload_of, to_edge, to_filter, to_query
from memory_store.vectors.filters import Condition, Ids, all_of
from memory_store.vectors.port import Found, Page, Placed, Point, Query, Ranked, SparseVector

_LOG: Final = logging.getLogger(__name__)
_MIB: Final = 1024**2
LEAST_FREE_BYTES: Final = 64 * _MIB
"""The default below which new memories are refused. Erasures go on in what is left."""
FLOOR_BYTES: Final = 8 * _MIB
"""Nothing at all is written below it."""
EMPTY_SHARD_BYTES: Final = 88 * _MIB
"""An empty shard with its payload indexes takes 66 MiB."""
_ROOMY_BYTES: Final = 1024 * _MIB
"""No request needs as much beyond the threshold, so its points need not be measured."""
_INDEXED_BYTES: Final = 2048
"""What a point takes in the payload indexes and trackers, at most."""
_RETRY_AFTER_S: Final = 30.0


class InsufficientStorage(Unavailable):
    """The disk is too full for a write. Nothing of it is stored, and it may be repeated once there is room."""

    default_code = "insufficient_storage"


class DiskRoom:
    """The free space of the disk under a folder; the folder need not exist yet.

    ``least_bytes``: what must be free for new memories. Changes of the state are logged once.
    """

    def __init__(self, folder: Path, *, least_bytes: int = LEAST_FREE_BYTES) -> None:
        self._folder = folder
        self._least_bytes = least_bytes
        self._was_full = False

    @property
    def full(self) -> bool:
        """Whether new memories are refused."""
        free = self._free()
        if (full := free < self._least_bytes) != self._was_full:
            self._was_full = full
            _LOG.log(logging.ERROR if full else logging.INFO, "%s", self._sentence(free) if full else "room again")
        return full

    def warning(self) -> str | None:
        """A sentence for the operator while new memories are refused."""
        return self._sentence(self._free()) if self.full else None

    def for_memories(self) -> None:
        """Raise ``InsufficientStorage`` while new memories are refused."""
        if self.full:
            raise self._refusal(self._free())

    def has(self, more_bytes: int = 0) -> None:
        """Raise ``InsufficientStorage`` where a write of so many bytes could use up the disk."""
        if (free := self._free()) < FLOOR_BYTES + more_bytes:
            raise self._refusal(free)

    def has_for(self, points: Sequence[Point]) -> None:
        """Raise ``InsufficientStorage`` where storing the points could use up the disk."""
        if self._free() < _ROOMY_BYTES:
            self.has(sum(map(_most_bytes, points)))

    def _free(self) -> int:
        there = next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())
        return shutil.disk_usage(there).free

    def _refusal(self, free: int) -> InsufficientStorage:
        return InsufficientStorage(self._sentence(free), retry_after_s=_RETRY_AFTER_S)

    def _sentence(self, free: int) -> str:
        return (
            f"The disk of the memory store is full: {free // _MIB} MiB are free, and new memories need "
            f"{self._least_bytes // _MIB} MiB. Reads go on, and erasures while {FLOOR_BYTES // _MIB} MiB are free."
        )


def _most_bytes(point: Point) -> int:
    """What a point takes at most: once in the log, once in the segment, and in the indexes."""
    vectors = 4 * len(point.dense) + 16 * len(point.sparse.indices)
    return 2 * vectors + 3 * len(json.dumps(point.payload)) + _INDEXED_BYTES


class EdgeInUse(RuntimeError):
    """Another process has the folder open."""


class EdgeCollection:
    """``Collection`` on one open shard, which its flushes keep safe until it is closed."""

    def __init__(self, name: str, shard: edge.EdgeShard, room: DiskRoom, flushes: EdgeFlushes) -> None:
        self.name = name
        self.flushes = flushes
        self._room = room
        self._shard: edge.EdgeShard | None = shard
        self._known = KnownPoints()

    async def close(self) -> None:
        """Flush and release the folder."""
        if self._shard:
            try:
                await self.flushes.close()
            finally:
                self._shard.close()
                self._shard = None

    async def ping(self) -> None:
        """Raise ``DependencyError`` when the shard is closed."""
        self._open_shard()

    async def admit(self) -> None:
        """Raise ``InsufficientStorage`` while the disk is too full for new memories."""
        self._room.for_memories()

    async def upsert(self, points: Sequence[Point]) -> None:
        """One operation in the log, applied at once."""
        self._room.has_for(points)
        self._update(edge.UpdateOperation.upsert_points([to_edge(point) for point in points]), points=len(points))
        self._known.note(points)

    async def get(self, ids: Sequence[str], *, where: Condition, agreed: bool = False) -> Sequence[Point]:
        if not ids:
            return []
        some = all_of([Ids(tuple(ids)), where])
        records, _ = self._scrolled(some, len(ids), with_payload=True, with_vector=True)
        return [from_edge(record) for record in records]

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        records, next_id = self._scrolled(where, limit, offset=start_id, with_payload=True)
        found = tuple(Found(self._known.text(record.id), payload_of(record.payload)) for record in records)
        return Page(found, None if next_id is None else str(next_id))

    async def newest(self, *, where: Condition, limit: int) -> Sequence[Found]:
        order = edge.OrderBy("created_at", edge.Direction.Desc)
        records, _ = self._scrolled(where, limit, with_payload=True, order_by=order)
        return [Found(self._known.text(record.id), payload_of(record.payload)) for record in records]

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        order = edge.OrderBy("place", edge.Direction.Asc)
        records, _ = self._scrolled(where, limit, with_payload=False, order_by=order)
        return [self._known.placed(record) for record in records]

    def _scrolled(self, where: Condition, limit: int, **how: Any) -> "tuple[list[edge.Record], object]":
        """Return records on which the condition holds, and where the next ones begin."""
        with translated():
            return self._open_shard().scroll(edge.ScrollRequest(limit=limit, filter=to_filter(where), **how))

    async def values(self, field: str, *, where: Condition, limit: int) -> Mapping[str, int]:
        request = edge.FacetRequest(field, limit=limit, exact=True, filter=to_filter(where))
        with translated():
            hits = self._open_shard().facet(request).hits
        return {str(hit.value): hit.count for hit in hits}

    async def nearest(self, dense: tuple[float, ...], *, where: Condition, limit: int) -> Sequence[Found]:
        request = edge.QueryRequest(limit=limit, query=to_query(dense), filter=to_filter(where), with_payload=True)
        with translated():
            points = self._open_shard().query(request)
        return [Found(self._known.text(point.id), payload_of(point.payload), point.score) for point in points]

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        """One batch, whose conditions are translated once."""
        seen, counted = to_filter(where), edge.SearchParams(idf=edge.IdfParams(corpus=to_filter(corpus)))
        requests = [
            edge.QueryRequest(
                limit=limit,
                query=to_query(query),
                filter=seen,
                params=counted if isinstance(query, SparseVector) else None,
                with_payload=False,
            )
            for query in queries
        ]
        with translated():
            answers = self._open_shard().query_batch(edge.QueryBatchRequest(requests))
        return [[self._known.ranked(point) for point in points] for points in answers]

    async def count(self, *, where: Condition) -> int:
        with translated():
            return self._open_shard().count(edge.CountRequest(exact=True, filter=to_filter(where)))

    async def delete(self, *, where: Condition) -> None:
        self._room.has()
        await self.flushes.before_deletion()
        self._update(edge.UpdateOperation.delete_points_by_filter(to_filter(where)))

    def _open_shard(self) -> edge.EdgeShard:
        if self._shard is None:
            raise DependencyError("the vector store is closed")
        return self._shard

    def _update(self, operation: edge.UpdateOperation, *, points: int = 1) -> None:
        with translated():
            self._open_shard().update(operation)
        self.flushes.written += points


@contextlib.contextmanager
def translated(path: Path | None = None) -> Generator[None]:
    """Edge's bare ``Exception`` as one of ours."""
    try:
        yield
    except (DependencyError, RuntimeError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # Rust's, no Exception
            raise
        if path and "WouldBlock" in str(error):
            raise EdgeInUse(
                f"{path} is open in another process. Stop it, or give this one a MEMLOOP_DATA_DIR of its own; "
                "several stores share memories through a Qdrant server (QDRANT_URL)."
            ) from error
        if path:
            raise EdgeDamaged(path, str(error)) from error
        raise DependencyError(f"Qdrant Edge: {error}") from error
