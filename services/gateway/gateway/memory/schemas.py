"""The bodies and answers that only the native memory routes have."""

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.memory import EventStatus


class Accepted(Wire):
    """A write that is queued."""

    event_id: str
    status: EventStatus = "queued"


class MemoryExport(Wire):
    """``POST /v1/memory/export``: whose memories, raw turns too, and whether only live versions are wanted."""

    user_id: str = Field(min_length=1, max_length=256)
    agent_id: str | None = Field(default=None, min_length=1, max_length=256)
    run_id: str | None = Field(default=None, min_length=1, max_length=256)
    include_raw: bool = False
    latest_only: bool = False


class FlushRequest(Wire):
    """``POST /v1/memory/buffers/flush``: which buffers; ids left out match any."""

    user_id: str = Field(min_length=1, max_length=256)
    agent_id: str | None = Field(default=None, min_length=1, max_length=256)
    run_id: str | None = Field(default=None, min_length=1, max_length=256)


class Flushing(Wire):
    """One queued write for each buffer."""

    events: tuple[Accepted, ...]


class MemoryDeleted(Wire):
    """``DELETE /v1/memory/{id}``."""

    id: str
    object: str = "memory"
    deleted: bool = True
