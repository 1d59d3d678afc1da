"""Memory policies: what may be kept of a tenant's, an agent's or a user's conversations."""

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.redaction import KindNames


class RedactionPolicy(Wire):
    """Which values are redacted before they are stored; a field that is None is inherited."""

    enabled: bool | None = None
    kinds: KindNames | None = Field(default=None, max_length=16)


class MemoryPolicy(Wire):
    """``PUT /v1/admin/memory-policy``: the settings of one level. A user's override an agent's, those the tenant's."""

    redaction: RedactionPolicy = RedactionPolicy()


class PolicyState(Wire):
    """The policy of one level, None without one, and the settings in force there."""

    tenant: str
    agent_id: str | None = None
    user_id: str | None = None
    policy: MemoryPolicy | None = None
    effective: MemoryPolicy
