"""Loads the operator's keys from the environment or a file: ``tenant:sha256 scopes=chat+admin expires=2027-01-01``.

They work without the state and bootstrap all other keys. Without ``scopes`` a key has every scope except ``admin``; a
key with ``admin`` is an operator key and may manage the keys of every tenant.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast

from gateway.access.principal import Principal
from gateway.settings import GatewaySettings
from memloop.wire.keys import ALL_SCOPES, DEFAULT_SCOPES, TENANT_PATTERN, Scope

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
        if text.strip():
            grant = _grant(text.strip(), f"{place} {number} of the API keys")
            found.setdefault(grant.digest, grant)
    return found


def _grant(text: str, place: str) -> Grant:
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise KeyFileError(f"{place} does not match {_FORM}")
    scopes = _scopes(entry["scopes"], place)
    digest = bytes.fromhex(entry["digest"])
    key = digest.hex()[:_KEY_NAME_CHARS]
    ends_at = _expiry(entry["expires"], place)
    principal = Principal(entry["tenant"], scopes, key=key, is_operator="admin" in scopes, expires_at=ends_at)
    return Grant(digest, principal)


def _scopes(text: str | None, place: str) -> frozenset[Scope]:
    if text is None:
        return DEFAULT_SCOPES
    named = frozenset(text.split("+"))
    if not named <= ALL_SCOPES:
        raise KeyFileError(f"{place} has an unknown scope; valid scopes are {', '.join(sorted(ALL_SCOPES))}")
    return cast(frozenset[Scope], named)


def _expiry(text: str | None, place: str) -> float:
    """Parse an expiry date as UTC midnight; a time without a zone is UTC as well."""
    if text is None:
        return NEVER
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise KeyFileError(f"{place} has an invalid date or time after expires=") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
