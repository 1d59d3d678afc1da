"""Keeps the files of Qdrant Edge safe: from a disk that is full, and from a power cut.

Edge maps its files, which have holes. A write into a hole takes a block of the disk. Where there is none, the kernel
ends the process with SIGBUS, which no code can catch. So there must be room before an operation begins.

Edge's ``flush`` waits for the disk some 200 times in a row, most of them for payload indexes, and holds the interpreter
lock throughout: 0.2 s on a quick disk, 2 s on one that takes 10 ms. The log alone is enough to lose nothing: Edge
replays it at the next start, 17,000 points a second, over whatever the other files hold. So the timer syncs the log, in
a thread and without the lock. It flushes, which is what empties the log, once the log has grown and while the disk is
quick, or when the log is long.
"""

import asyncio
import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import qdrant_edge as edge

from memloop.wire.errors import Unavailable
from memory_store.vectors.edge_counts import FlushedPoints, sync_folder
from memory_store.vectors.port import Point

_LOG: Final = logging.getLogger(__name__)
_MIB: Final = 1024**2
LEAST_FREE_BYTES: Final = 64 * _MIB
"""The default below which new memories are refused. Erasures go on in what is left."""
FLOOR_BYTES: Final = 8 * _MIB
"""Nothing at all is written below it."""
_EMPTY_SHARD_BYTES: Final = 96 * _MIB
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
            raise self._refusal()

    def for_points(self, points: Sequence[Point]) -> None:
        """Raise ``InsufficientStorage`` where storing the points could use up the disk."""
        free = self._free()
        if free < _ROOMY_BYTES and free < FLOOR_BYTES + sum(map(_most_bytes, points)):
            raise self._refusal()

    def for_deletions(self) -> None:
        """Raise ``InsufficientStorage`` where even the log's entry of a deletion could use up the disk."""
        if self._free() < FLOOR_BYTES:
            raise self._refusal()

    def for_shard(self, *, new: bool) -> None:
        """Raise ``InsufficientStorage`` where loading a shard, or making one, could use up the disk."""
        if self._free() < (_EMPTY_SHARD_BYTES if new else FLOOR_BYTES):
            raise self._refusal()

    def _free(self) -> int:
        there = next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())
        return shutil.disk_usage(there).free

    def _refusal(self) -> InsufficientStorage:
        return InsufficientStorage(self._sentence(self._free()), retry_after_s=_RETRY_AFTER_S)

    def _sentence(self, free: int) -> str:
        return (
            f"The disk of the memory store is full: {free // _MIB} MiB are free, and new memories need "
            f"{self._least_bytes // _MIB} MiB. Reads go on, and erasures while {FLOOR_BYTES // _MIB} MiB are free."
        )


def _most_bytes(point: Point) -> int:
    """What a point takes at most: once in the log, once in the segment, and in the indexes."""
    vectors = 4 * len(point.dense) + 16 * len(point.sparse.indices)
    return 2 * vectors + 3 * len(json.dumps(point.payload)) + _INDEXED_BYTES


_QUICK_S: Final = 0.01
"""A sync of the log, which waits four times, takes longer on a disk that a flush would wait for at length."""
_GROWN: Final = 2_000
"""So many points since the last flush are worth one: 7 MB of log."""
_LONG: Final = 8_000
"""So many are flushed whatever the disk does: 28 MB of log, replayed in half a second."""

Around: TypeAlias = Callable[[], contextlib.AbstractContextManager[None]]


def sync_log(path: Path) -> float:
    """Make the log of the shard in that folder durable, without the interpreter lock; return the seconds it took."""
    began = time.monotonic()
    for file in (path / "wal").iterdir():
        with contextlib.suppress(FileNotFoundError):  # Edge renames and removes files of its log
            handle = os.open(file, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    sync_folder(path / "wal")
    return time.monotonic() - began


class EdgeFlushes:
    """The flushes of one open shard, every ``flush_s`` from inside a running event loop.

    ``flushing`` is entered around each wait for the disk. ``points`` counts what the last flush left: a shard that was
    opened without such a count is flushed at the first turn of the timer, one that lost it to a deletion once a turn
    finds no more writes.
    """

    def __init__(
        self,
        path: Path,
        shard: edge.EdgeShard,
        points: FlushedPoints,
        *,
        flush_s: float,
        flushing: Around = contextlib.nullcontext,
        sync: Callable[[Path], float] = sync_log,
    ) -> None:
        self._path = path
        self._shard = shard
        self._points = points
        self._flushing = flushing
        self._sync = sync
        self._written = 1 if points.known else _LONG  # 1: what the log of a killed process may hold
        self._synced = self._flushed = 0
        self._alone = asyncio.Lock()
        """Held while the count of points changes on the disk, and while the timer waits for the disk."""
        self._resting = False
        self._timer = asyncio.create_task(self._on_timer(flush_s), name="edge-flush")

    @property
    def dirty(self) -> bool:
        """Whether there are writes that a power cut could take."""
        return self._written > self._synced

    def wrote(self, points: int) -> None:
        """Note that so many points were written."""
        self._written += points

    async def before_deletion(self) -> None:
        """Forget the count of points, on the disk when this returns. The deletion follows without another await."""
        while self._points.known or self._alone.locked():
            async with self._alone:
                await asyncio.to_thread(self._points.forget)

    async def turn(self) -> None:
        """Make what was written until now survive a power cut."""
        async with self._alone:
            written = self._written
            if self._resting or written == self._flushed:
                return
            paused = written == self._synced
            with self._flushing():
                took_s = await asyncio.to_thread(self._sync, self._path)
            self._synced = written
            behind = self._written - self._flushed
            worth = behind >= _GROWN or (paused and not self._points.known)
            if behind >= _LONG or (worth and took_s < _QUICK_S):
                await self._flush()

    async def _flush(self) -> None:
        """Flush what was written, and count it on the disk. The caller holds the lock."""
        if self._written == self._flushed:
            return
        with self._flushing():
            self._shard.flush()
            self._synced = self._flushed = self._written
            count = self._shard.count(edge.CountRequest(exact=True))
        await asyncio.to_thread(self._points.write, count)

    @contextlib.asynccontextmanager
    async def rest(self) -> AsyncGenerator[None]:
        """Flush, and keep the timer away during the block: the files stay as they are on the disk."""
        async with self._alone:
            await self._flush()
            self._resting = True
        try:
            yield
        finally:
            self._resting = False

    async def close(self) -> None:
        """Flush what is left, and stop the timer. Raises Edge's errors."""
        async with self._alone:
            self._timer.cancel()
            await self._flush()
        await asyncio.gather(self._timer, return_exceptions=True)

    async def _on_timer(self, flush_s: float) -> None:
        while True:
            await asyncio.sleep(flush_s)
            try:
                await self.turn()
            except Exception:  # noqa: BLE001 - Edge raises bare Exception; the next turn tries again
                _LOG.exception("the vector store could not be flushed")
