"""Keeps the files of Qdrant Edge safe from a power cut.

Edge's ``flush`` waits for the disk some 200 times in a row, most of them for payload indexes, and holds the interpreter
lock throughout: 0.2 s on a quick disk, 2 s on one that takes 10 ms. The log alone is enough to lose nothing: Edge
replays it at the next start, 17,000 points a second, over whatever the other files hold. So the timer syncs the log, in
a thread and without the lock. It flushes, which is what empties the log, once the log has grown and while the disk is
quick, or when the log is long.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Final, TypeAlias

import qdrant_edge as edge

from memory_store.vectors.edge_counts import FlushedPoints, sync_folder

_LOG: Final = logging.getLogger(__name__)
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
    finds no more writes. ``written`` counts the points that were written, by the shard's collection.
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
        self.written = 1 if points.known else _LONG  # 1: what the log of a killed process may hold
        self._synced = self._flushed = 0
        self._alone = asyncio.Lock()
        """Held while the count of points changes on the disk, and while the timer waits for the disk."""
        self._resting = False
        self._timer = asyncio.create_task(self._on_timer(flush_s), name="edge-flush")

    @property
    def dirty(self) -> bool:
        """Whether there are writes that a power cut could take."""
        return self.written > self._synced

    async def before_deletion(self) -> None:
        """Forget the count of points, on the disk when this returns. The deletion follows without another await."""
        while self._points.known or self._alone.locked():
            async with self._alone:
                await asyncio.to_thread(self._points.forget)

    async def turn(self) -> None:
        """Make what was written until now survive a power cut."""
        async with self._alone:
            written = self.written
            if self._resting or written == self._flushed:
                return
            paused = written == self._synced
            with self._flushing():
                took_s = await asyncio.to_thread(self._sync, self._path)
            self._synced = written
            behind = self.written - self._flushed
            worth = behind >= _GROWN or (paused and not self._points.known)
            if behind >= _LONG or (worth and took_s < _QUICK_S):
                await self._flush()

    async def _flush(self) -> None:
        """Flush what was written, and count it on the disk. The caller holds the lock."""
        if self.written == self._flushed:
            return
        with self._flushing():
            self._shard.flush()
            self._synced = self._flushed = self.written
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
