"""Request and response bodies of the native memory routes."""

from memloop.wire.base import Wire
from memloop.wire.memory import UserFields
from memloop.wire.memory_events import EventStatus


class Accepted(Wire):
    """A queued write."""

    event_id: str
    status: EventStatus = "queued"


class MemoryExport(UserFields):
    """``POST /v1/memory/export``: the namespace, and whether to include raw turns or only the latest versions."""

    include_raw: bool = False
    latest_only: bool = False


class FlushRequest(UserFields):
    """``POST /v1/memory/buffers/flush``: the namespace of the buffers; omitted ids match any."""


class Flushing(Wire):
    """The queued writes, one for each buffer."""

    events: tuple[Accepted, ...]


class MemoryDeleted(Wire):
    """``DELETE /v1/memory/{id}``."""

    id: str
    object: str = "memory"
    deleted: bool = True
