"""Request and response bodies of the native memory routes."""

from memloop.wire.base import Wire
from memloop.wire.fields import Name
from memloop.wire.lists import Deleted
from memloop.wire.memory import Scope, UserFields
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


class RedecideRequest(Wire):
    """``POST /v1/memory/redecide``: whose writes are decided again; without ids, the whole tenant's."""

    user_id: Name | None = None
    agent_id: Name | None = None
    run_id: Name | None = None

    def scope(self, tenant: str) -> Scope:
        """Return the tenant's scope of these ids."""
        return Scope(tenant=tenant, user_id=self.user_id, agent_id=self.agent_id, run_id=self.run_id)


class Redeciding(Wire):
    """The writes whose new decisions are queued. ``has_more``: repeat the request for further ones."""

    events: tuple[Accepted, ...]
    has_more: bool = False


class MemoryDeleted(Deleted):
    """``DELETE /v1/memory/{id}``."""

    object: str = "memory"
