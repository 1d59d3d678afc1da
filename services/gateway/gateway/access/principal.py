"""The caller of a request and its permissions, and the keys that the operator gives from environment or file.

An operator's key is ``tenant:sha256 scopes=chat+admin expires=2027-01-01``. Such keys work without the state and
bootstrap all others. Without ``scopes`` a key has every scope except ``admin``; a key with ``admin`` is an operator key
and may manage the keys of every tenant.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, cast

from gateway.settings import GatewaySettings
from memloop.wire.errors import Forbidden
from memloop.wire.keys import ALL_SCOPES, DEFAULT_SCOPES, TENANT_PATTERN, Scope


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. ``tenant`` limits the data that the request may access; ``key`` is the key's public id."""

    tenant: str
    scopes: frozenset[Scope]
    key: str = field(default="", compare=False)
    is_operator: bool = False
    """Whether it may manage the keys of every tenant, not only its own."""
    expires_at: float = field(default=math.inf, compare=False)
    """When the secret that it presented ends, in seconds since the epoch."""

    @property
    def bucket(self) -> str:
        """The name under which the caller's requests and tokens are counted."""
        return f"{self.tenant}:{self.key}"

    def allows(self, scope: Scope) -> bool:
        """Whether the key has the scope."""
        return scope in self.scopes

    def require_operator(self, message: str) -> None:
        """Raise Forbidden (403 ``permission_denied``) unless an operator calls; without configured keys all may."""
        if self.key and not self.is_operator:
            raise Forbidden(message, code="permission_denied")

    def require(self, *scopes: Scope, param: str | None = None) -> None:
        """Raise Forbidden (403 ``permission_denied``) unless the key has all scopes."""
        missing = [scope for scope in scopes if scope not in self.scopes]
        if missing:
            raise Forbidden(
                f"This key has insufficient permissions for this operation. Missing scopes: {', '.join(missing)}.",
                param=param,
                code="permission_denied",
            )

    def require_no_wider(self, scopes: Collection[Scope], *, expires_at: float | None) -> None:
        """Raise Forbidden when a key would have a right or a lifetime that its maker lacks; an operator may give all.

        ``expires_at`` is the key's end, None for a key without one.
        """
        if self.is_operator:
            return
        self.require(*sorted(scopes), param="scopes")
        if (math.inf if expires_at is None else expires_at) > self.expires_at:
            raise Forbidden(
                f"A key cannot outlive the one that makes it: expires_at may be at most {int(self.expires_at)}.",
                param="expires_at",
                code="permission_denied",
            )


def managed(principal: Principal, tenant: str | None) -> str:
    """Return the tenant to manage, by default the caller's. Raises Forbidden when the caller may not manage it."""
    if tenant is None or tenant == principal.tenant:
        return principal.tenant
    if not principal.is_operator:
        raise Forbidden("This key may manage only its own tenant.", param="tenant", code="permission_denied")
    return tenant


NEVER: Final = float("inf")
_KEY_NAME_CHARS: Final = 16
_ENTRY = re.compile(
    rf"(?P<tenant>{TENANT_PATTERN}):(?P<digest>[0-9a-fA-F]{{64}})"
    r"(\s+scopes=(?P<scopes>\S+))?(\s+expires=(?P<expires>\S+))?"
)
_FORM = "tenant:sha256-hex-of-the-key [scopes=chat+memory:read+…] [expires=2027-01-01]"


class KeyFileError(ValueError):
    """A key entry that cannot be parsed. The message names its position, never its content."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Maps a secret's SHA-256 to its principal, until the principal's ``expires_at``."""

    digest: bytes
    principal: Principal


def load_static_keys(settings: GatewaySettings) -> Mapping[bytes, Grant]:
    """Load ``MEMLOOP_API_KEYS`` (comma-separated) or ``MEMLOOP_API_KEYS_FILE`` (lines, ``#`` comments), by digest.

    The first entry of a digest wins. Raises KeyFileError.
    """
    if settings.api_keys_file is None:
        return _grants(settings.api_keys.get_secret_value().split(","), "entry")
    lines = settings.api_keys_file.read_text("utf-8").splitlines()
    return _grants((line.split("#", 1)[0] for line in lines), f"{settings.api_keys_file}, line")


def _grants(texts: Iterable[str], place: str) -> Mapping[bytes, Grant]:
    found: dict[bytes, Grant] = {}
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        where, entry = f"{place} {number} of the API keys", _ENTRY.fullmatch(text.strip())
        if entry is None:
            raise KeyFileError(f"{where} does not match {_FORM}")
        named = entry["scopes"]
        scopes = DEFAULT_SCOPES if named is None else cast(frozenset[Scope], frozenset(named.split("+")))
        if not scopes <= ALL_SCOPES:
            raise KeyFileError(f"{where} has an unknown scope; valid scopes are {', '.join(sorted(ALL_SCOPES))}")
        digest, ends_at = bytes.fromhex(entry["digest"]), _expiry(entry["expires"], where)
        key, is_operator = digest.hex()[:_KEY_NAME_CHARS], "admin" in scopes
        principal = Principal(entry["tenant"], scopes, key=key, is_operator=is_operator, expires_at=ends_at)
        found.setdefault(digest, Grant(digest, principal))
    return found


def _expiry(text: str | None, place: str) -> float:
    """Parse an expiry date as UTC midnight; a time without a zone is UTC as well."""
    if text is None:
        return NEVER
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise KeyFileError(f"{place} has an invalid date or time after expires=") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
