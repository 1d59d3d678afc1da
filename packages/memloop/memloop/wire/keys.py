"""API keys and the audit log: what ``/v1/admin/keys`` and ``/v1/admin/audit`` take and give.

No answer but the first one to a new secret holds it. Times of keys are seconds since the epoch, as OpenAI gives those
of its keys. The log has who was denied what, and who changed which key: no secret and no text of a user stands in it.
"""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.fields import Name
from memloop.wire.lists import CursorPage, Deleted

Scope: TypeAlias = Literal["chat", "memory:read", "memory:write", "long-read", "admin"]
"""What a key may do. ``admin`` brings none of the others with it, nor the right to make a key that has them."""
ALL_SCOPES: Final[frozenset[Scope]] = frozenset(get_args(Scope))
DEFAULT_SCOPES: Final[frozenset[Scope]] = ALL_SCOPES - {"admin"}
"""The default of a key that names none."""
TENANT_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
MAX_OVERLAP_S: Final = 30 * 24 * 3600


class KeyCreate(Wire):
    """``POST /v1/admin/keys``. Without ``tenant``: the caller's own."""

    name: Annotated[Name, Field(max_length=128)]
    tenant: str | None = Field(default=None, pattern=f"^{TENANT_PATTERN}$")
    scopes: tuple[Scope, ...] = Field(default=tuple(sorted(DEFAULT_SCOPES)), min_length=1, max_length=len(ALL_SCOPES))
    expires_at: int | None = Field(default=None, ge=0, le=253_402_300_799)


class KeyRotate(Wire):
    """``POST /v1/admin/keys/{id}/rotate``: for so many seconds the old secret works beside the new one."""

    overlap_s: int = Field(default=0, ge=0, le=MAX_OVERLAP_S)


class ApiKey(Wire):
    """A key as everybody may see it who manages it. ``prefix`` is how its secret begins."""

    id: str
    object: Literal["api_key"] = "api_key"
    tenant: str
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    created_at: int
    expires_at: int | None = None
    last_used_at: int | None = None
    """Late by a minute or two."""
    overlap_until: int | None = None
    """Until when the secret before the newest one works, if it still does."""


class NewApiKey(ApiKey):
    """A key with its new secret, which is shown this once."""

    secret: str


class KeyPage(CursorPage[ApiKey]):
    """``GET /v1/admin/keys``: newest first."""


class KeyRevoked(Deleted):
    """``DELETE /v1/admin/keys/{id}``."""

    object: Literal["api_key"] = "api_key"


class WebhookSecret(Wire):
    """``GET /v1/admin/webhook-secret``: what verifies a tenant's webhooks."""

    object: Literal["webhook_secret"] = "webhook_secret"
    tenant: str
    secret: str


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


class AuditPage(CursorPage[AuditRecord]):
    """``GET /v1/admin/audit``: newest first."""
