"""Qdrant Edge: the engine of Qdrant inside this process, for one machine.

Durability. An update is in Edge's write-ahead log (a mapped file) when ``update`` returns, so a killed *process* loses
nothing. A power cut can lose what the kernel has not written: a timer bounds that (``edge_files``). ``optimize``
holds the interpreter lock for seconds and is never called.

Every other call takes well under a millisecond and holds the interpreter lock, so a thread would only add a hop: calls
run where they are awaited.
"""

import asyncio
import contextlib
import hashlib
import secrets
import shutil
import tarfile
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import qdrant_edge as edge

from memloop.wire.errors import DependencyError
from memloop_service.private_files import make_private
from memory_store.vectors.edge_counts import EdgeDamaged, FlushedPoints, check_contents, replace_file, sync_folder
from memory_store.vectors.edge_files import LEAST_FREE_BYTES, Around, DiskRoom, EdgeFlushes
from memory_store.vectors.edge_types import (
    KnownPoints,
    created,
    dimension_of,
    from_edge,
    index_of,
    is_made,
    payload_of,
    to_edge,
    to_filter,
    to_query,
)
from memory_store.vectors.filters import Condition, Ids, all_of
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.port import Collection, Found, Page, Placed, Point, Query, Ranked, SparseVector
from memory_store.vectors.schema import PAYLOAD_INDEXES, CollectionSpec, is_ours


class EdgeInUse(RuntimeError):
    """Another process has the folder open."""


_ARCHIVE = "snapshot-"
_ARCHIVE_KEPT_S = 3600.0


class QdrantEdge(LiveCollection):
    """``VectorStore`` on Edge shards, each in a subfolder named as its collection.

    ``flush_s``: seconds between flushes while there are writes. ``flushing`` is entered around each. ``free_bytes``:
    what must be free on the disk for new memories.
    """

    def __init__(
        self,
        folder: Path,
        *,
        flush_s: float,
        flushing: Around = contextlib.nullcontext,
        free_bytes: int = LEAST_FREE_BYTES,
    ) -> None:
        self.room = DiskRoom(folder, least_bytes=free_bytes)
        collections = EdgeCollections(folder, flush_s=flush_s, flushing=flushing, room=self.room)
        super().__init__(collections, site=f"edge-{hashlib.sha256(bytes(folder.resolve())).hexdigest()[:16]}")

    async def admit(self) -> None:
        """Raise ``InsufficientStorage`` while the disk is too full for new memories."""
        self.room.for_memories()

    async def warning(self) -> str | None:
        """A sentence for the operator while new memories are refused."""
        return self.room.warning()


class EdgeCollections:
    """``Collections`` in the subfolders of one folder; a small file, replaced as a whole, names the one in service."""

    def __init__(
        self,
        folder: Path,
        *,
        flush_s: float,
        flushing: Around = contextlib.nullcontext,
        room: DiskRoom | None = None,
    ) -> None:
        self._folder = folder
        self._room = room or DiskRoom(folder)
        self._flush_s = flush_s
        self._flushing = flushing
        self._pointer = folder / "in-service"

    async def names(self) -> Sequence[str]:
        """The subfolders with our names; one that holds no shard, as a kill while it was made leaves it, is none."""
        if not self._folder.is_dir():
            return []
        return [path.name for path in self._folder.iterdir() if is_ours(path.name) and is_made(path)]

    async def serving(self) -> str | None:
        """Return the collection that the file names. Raises ``EdgeDamaged`` where it is gone: memories were in it."""
        if not self._pointer.is_file():
            return None
        name = self._pointer.read_text().strip()
        if not is_ours(name):
            raise EdgeDamaged(self._pointer, "it names no collection")
        if not is_made(self._folder / name):
            raise EdgeDamaged(self._folder / name, "edge_config.json is missing")
        return name

    async def serve(self, name: str) -> None:
        """Replace the file, on the disk when this returns."""
        replace_file(self._pointer, name)

    async def open(self, spec: CollectionSpec, name: str) -> "EdgeCollection":
        """Load the shard or make it, with its indexes; it is flushed on a timer until it is closed."""
        path = self._folder / name
        with _translated(path):
            self._folder.mkdir(parents=True, exist_ok=True)
            make_private(self._folder)
            self._room.for_shard(new=not is_made(path))
            if not is_made(path):
                shutil.rmtree(path, ignore_errors=True)
            shard = edge.EdgeShard.load(str(path)) if is_made(path) else created(path, spec)
            spec.check_dimension(dimension_of(path))
        points = FlushedPoints(path)
        points.check(shard.count(edge.CountRequest(exact=True)))
        with _translated(path):
            check_contents(path, shard)
        with _translated():
            made = shard.info().payload_schema
            for field, kind in PAYLOAD_INDEXES:
                if field not in made:
                    shard.update(edge.UpdateOperation.create_field_index(field, index_of(kind)))
        flushes = EdgeFlushes(path, shard, points, flush_s=self._flush_s, flushing=self._flushing)
        return EdgeCollection(name, shard, self._room, flushes)

    async def drop(self, name: str) -> None:
        """Remove the subfolder."""
        shutil.rmtree(self._folder / name)
        sync_folder(self._folder)

    async def archive(self, collection: Collection) -> Path:
        """Flush the shard, then pack its folder and the file that names it, beside them; old archives go."""
        self._room.for_memories()
        async with collection.flushes.rest() if isinstance(collection, EdgeCollection) else contextlib.nullcontext():
            return await asyncio.to_thread(self._pack, collection.name)

    def _pack(self, name: str) -> Path:
        for left in self._folder.glob(f"{_ARCHIVE}*"):
            if time.time() - left.stat().st_mtime > _ARCHIVE_KEPT_S:
                left.unlink()
        file = self._folder / f"{_ARCHIVE}{secrets.token_hex(8)}.tar"
        with tarfile.open(file, "w") as archive:
            archive.add(self._folder / name, arcname=name)
            archive.add(self._pointer, arcname=self._pointer.name)
        return file

    async def close(self) -> None:
        """Nothing is held but open collections."""


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

    async def upsert(self, points: Sequence[Point]) -> None:
        """One operation in the log, applied at once."""
        self._room.for_points(points)
        self._update(edge.UpdateOperation.upsert_points([to_edge(point) for point in points]), points=len(points))
        self._known.note(points)

    async def get(self, ids: Sequence[str], *, where: Condition, agreed: bool = False) -> Sequence[Point]:
        """Points by id that the condition allows."""
        if not ids:
            return []
        request = edge.ScrollRequest(
            limit=len(ids),
            filter=to_filter(all_of([Ids(tuple(ids)), where])),
            with_payload=True,
            with_vector=True,
        )
        with _translated():
            records, _ = self._open_shard().scroll(request)
        return [from_edge(record) for record in records]

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        """A page in the order of ids."""
        request = edge.ScrollRequest(offset=start_id, limit=limit, filter=to_filter(where), with_payload=True)
        with _translated():
            records, next_id = self._open_shard().scroll(request)
        found = tuple(Found(self._known.text(record.id), payload_of(record.payload)) for record in records)
        return Page(found, None if next_id is None else str(next_id))

    async def newest(self, *, where: Condition, limit: int) -> Sequence[Found]:
        """A page by time, from the newest on."""
        order = edge.OrderBy("created_at", edge.Direction.Desc)
        request = edge.ScrollRequest(limit=limit, filter=to_filter(where), with_payload=True, order_by=order)
        with _translated():
            records, _ = self._open_shard().scroll(request)
        return [Found(self._known.text(record.id), payload_of(record.payload)) for record in records]

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        """Ids by place."""
        order = edge.OrderBy("place", edge.Direction.Asc)
        request = edge.ScrollRequest(limit=limit, filter=to_filter(where), with_payload=False, order_by=order)
        with _translated():
            records, _ = self._open_shard().scroll(request)
        return [self._known.placed(record) for record in records]

    async def values(self, field: str, *, where: Condition, limit: int) -> Mapping[str, int]:
        """Exact counts by value."""
        request = edge.FacetRequest(field, limit=limit, exact=True, filter=to_filter(where))
        with _translated():
            hits = self._open_shard().facet(request).hits
        return {str(hit.value): hit.count for hit in hits}

    async def nearest(self, dense: tuple[float, ...], *, where: Condition, limit: int) -> Sequence[Found]:
        """By cosine."""
        request = edge.QueryRequest(limit=limit, query=to_query(dense), filter=to_filter(where), with_payload=True)
        with _translated():
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
        with _translated():
            answers = self._open_shard().query_batch(edge.QueryBatchRequest(requests))
        return [[self._known.ranked(point) for point in points] for points in answers]

    async def count(self, *, where: Condition) -> int:
        """Exact count."""
        with _translated():
            return self._open_shard().count(edge.CountRequest(exact=True, filter=to_filter(where)))

    async def delete(self, *, where: Condition) -> None:
        """Remove by condition."""
        self._room.for_deletions()
        await self.flushes.before_deletion()
        self._update(edge.UpdateOperation.delete_points_by_filter(to_filter(where)))

    def _open_shard(self) -> edge.EdgeShard:
        if self._shard is None:
            raise DependencyError("the vector store is closed")
        return self._shard

    def _update(self, operation: edge.UpdateOperation, *, points: int = 1) -> None:
        with _translated():
            self._open_shard().update(operation)
        self.flushes.wrote(points)


@contextlib.contextmanager
def _translated(path: Path | None = None) -> Generator[None]:
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
