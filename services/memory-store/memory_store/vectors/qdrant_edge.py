"""Qdrant Edge: the engine of Qdrant inside this process, for one machine.

Durability. An update is in Edge's write-ahead log (a mapped file) when ``update`` returns, so a killed *process* loses
nothing. A power cut can lose what the kernel has not written: a timer bounds that (``edge_files``). ``optimize``
holds the interpreter lock for seconds and is never called.
"""

import asyncio
import contextlib
import hashlib
import secrets
import shutil
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import qdrant_edge as edge

from memloop_service.private_files import make_private
from memory_store.vectors.edge_collection import (
    EMPTY_SHARD_BYTES,
    LEAST_FREE_BYTES,
    DiskRoom,
    EdgeCollection,
    translated,
)
from memory_store.vectors.edge_counts import EdgeDamaged, FlushedPoints, check_contents, replace_file, sync_folder
from memory_store.vectors.edge_files import Around, EdgeFlushes
from memory_store.vectors.edge_types import created, dimension_of, index_of, is_made
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.port import Collection
from memory_store.vectors.schema import PAYLOAD_INDEXES, CollectionSpec, is_ours

_ARCHIVE = "snapshot-"
_ARCHIVE_KEPT_S = 3600.0


class QdrantEdge(LiveCollection):
    """The collections on Edge shards, each in a subfolder named as its collection.

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

    async def warning(self) -> str | None:
        return self.room.warning()


class EdgeCollections:
    """``Collections`` in the subfolders of one folder; a small file, replaced as a whole, names the one in service."""

    def __init__(
        self, folder: Path, *, flush_s: float, flushing: Around = contextlib.nullcontext, room: DiskRoom | None = None
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

    async def open(self, spec: CollectionSpec, name: str) -> EdgeCollection:
        """Load the shard or make it, with its indexes; it is flushed on a timer until it is closed."""
        path = self._folder / name
        with translated(path):
            self._folder.mkdir(parents=True, exist_ok=True)
            make_private(self._folder)
            self._room.has(0 if is_made(path) else EMPTY_SHARD_BYTES)
            if not is_made(path):
                shutil.rmtree(path, ignore_errors=True)
            shard = edge.EdgeShard.load(str(path)) if is_made(path) else created(path, spec)
            spec.check_dimension(dimension_of(path))
        points = FlushedPoints(path)
        points.check(shard.count(edge.CountRequest(exact=True)))
        with translated(path):
            check_contents(path, shard)
        with translated():
            made = shard.info().payload_schema
            for field, kind in PAYLOAD_INDEXES:
                if field not in made:
                    shard.update(edge.UpdateOperation.create_field_index(field, index_of(kind)))
        flushes = EdgeFlushes(path, shard, points, flush_s=self._flush_s, flushing=self._flushing)
        return EdgeCollection(name, shard, self._room, flushes)

    async def drop(self, name: str) -> None:
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
