"""The audit log: who was denied what, and who changed which key. No secret and no text of a user stands in it."""

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Wire

AuditKind: TypeAlias = Literal["admin", "denied", "unauthenticated"]
"""``admin``: keys made, rotated, revoked; traces switched, exported; memory policies and
webhooks changed. ``denied``: a known key without the scope, or
after another tenant's things.
``unauthenticated``: no known key; it belongs to no tenant."""
AuditAction: TypeAlias = Literal[
    "key.created",
    "key.rotated",
    "key.revoked",
    "traces.enabled",
    "traces.disabled",
    "traces.exported",
    "memory_policy.changed",
    "memory_policy.deleted",
    "memory_webhook.created",
    "memory_webhook.deleted",
    "rollout.changed",
    "rollout.ended",
    "denied",
]


class AuditEntry(Wire):
    """One thing that happened, or ``count`` of them that were the same within some seconds."""

    at: datetime
    kind: AuditKind
    action: AuditAction
    tenant: str = ""
    """Whose log it stands in: the tenant of the key that was changed, or of the caller who was denied."""
    actor_tenant: str = ""
    actor_key: str = ""
    """The caller's key: its id, or the start of the hash of a configured one."""
    target: str = ""
    """The id of the key that was changed; of a memory policy, its level; of a memory webhook, its id; of a
    rollout, its model."""
    method: str = ""
    route: str = ""
    """The route's template, never the path that was asked for."""
    status: int = 0
    code: str = ""
    address: str = ""
    request_id: str = ""
    """Of the first of them."""
    count: int = Field(default=1, ge=1)


class AuditRecord(AuditEntry):
    """An entry that was read back; ``id`` is its place in the log."""

    id: str


class AuditPage(Wire):
    """``GET /v1/admin/audit``: newest first; ``next_cursor`` is None on the last page."""

    object: Literal["list"] = "list"
    data: tuple[AuditRecord, ...]
    next_cursor: str | None = None
    has_more: bool = False
