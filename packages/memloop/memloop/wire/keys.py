"""API keys: what ``/v1/admin/keys`` takes and gives. No answer but the first one to a new secret holds it.

Times are seconds since the epoch, as OpenAI gives those of its keys.
"""

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.fields import Name

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


class KeyPage(Wire):
    """``GET /v1/admin/keys``: newest first; ``next_cursor`` is None on the last page."""

    object: Literal["list"] = "list"
    data: tuple[ApiKey, ...]
    next_cursor: str | None = None
    has_more: bool = False


class KeyRevoked(Wire):
    """``DELETE /v1/admin/keys/{id}``."""

    id: str
    object: Literal["api_key"] = "api_key"
    deleted: Literal[True] = True


class WebhookSecret(Wire):
    """``GET /v1/admin/webhook-secret``: what verifies a tenant's webhooks."""

    object: Literal["webhook_secret"] = "webhook_secret"
    tenant: str
    secret: str
