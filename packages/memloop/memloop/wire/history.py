"""The versions of a memory, with what happened to each."""

from datetime import datetime

from memloop.wire.base import Wire
from memloop.wire.memory import MemoryItem


class VersionChange(Wire):
    """Why a version came to be or was changed. ``rule`` is the store's name for it, ``because`` the same in words.

    ``other`` is the version that it was compared with or that took its place; ``similarity`` the cosine, where texts
    and not keys were compared; ``at`` ingest time.
    """

    rule: str
    because: str
    at: datetime
    other: str | None = None
    similarity: float | None = None


class ItemVersion(MemoryItem):
    """A version with what happened to it, oldest first."""

    changes: tuple[VersionChange, ...] = ()


class History(Wire):
    """All versions of one item, oldest first."""

    versions: tuple[ItemVersion, ...]
