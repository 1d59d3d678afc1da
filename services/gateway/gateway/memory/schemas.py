"""Request and response bodies of the native memory routes."""

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.memory import EventStatus


class Accepted(Wire):
    """A queued write."""

    event_id: str
    status: EventStatus = "queued"


class MemoryExport(Wire):
    """``POST /v1/memory/export``: the namespace, and whether to include raw turns or only the latest versions."""

    user_id: str = Field(min_length=1, max_length=256)
    agent_id: str | None = Field(default=None, min_length=1, max_length=256)
    run_id: str | None = Field(default=None, min_length=1, max_length=256)
    include_raw: bool = False
    latest_only: bool = False


class FlushRequest(Wire):
    """``POST /v1/memory/buffers/flush``: the namespace of the buffers; omitted ids match any."""

    user_id: str = Field(min_length=1, max_length=256)
    agent_id: str | None = Field(default=None, min_length=1, max_length=256)
    run_id: str | None = Field(default=None, min_length=1, max_length=256)


class Flushing(Wire):
    """The queued writes, one for each buffer."""

    events: tuple[Accepted, ...]


class MemoryDeleted(Wire):
    """``DELETE /v1/memory/{id}``."""

    id: str
    object: str = "memory"
    deleted: bool = True
