"""Refuses writes while the disk of Qdrant Edge's files is nearly full.

Edge maps its files, which have holes. A write into a hole takes a block of the disk. Where there is none, the kernel
ends the process with SIGBUS, which no code can catch. So there must be room before an operation begins.
"""

import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memloop.wire.errors import Unavailable
from memory_store.vectors.port import Point

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
_log = logging.getLogger(__name__)


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
            _log.log(logging.ERROR if full else logging.INFO, "%s", self._sentence(free) if full else "room again")
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
