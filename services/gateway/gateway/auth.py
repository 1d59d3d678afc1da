"""Who is calling: an API key names its tenant, and only the key's hash is kept.

Without any key the process serves the tenant ``local`` and listens on the loopback interface only.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gateway.settings import GatewaySettings
from memloop.wire.errors import Unauthenticated

LOCAL_TENANT = "local"
_KEY_NAME_CHARS = 16
_ENTRY = re.compile(r"(?P<tenant>[A-Za-z0-9][A-Za-z0-9._-]{0,63}):(?P<digest>[0-9a-fA-F]{64})")
_CREDENTIALS = re.compile(r"\s*(?:Bearer|Token)\s+(?P<key>\S+)\s*", re.IGNORECASE)


class KeyFileError(ValueError):
    """A key entry that cannot be read; the message gives its place, never its content."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller. ``tenant`` bounds everything that the request may see; ``key`` is the start of the key's hash."""

    tenant: str
    key: str = field(default="", compare=False)

    @property
    def bucket(self) -> str:
        """What its requests and tokens are counted under."""
        return f"{self.tenant}:{self.key}"


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Known keys as (tenant, sha256 of the key)."""

    entries: tuple[tuple[str, bytes], ...]

    @property
    def has_keys(self) -> bool:
        """Whether a caller must present a key."""
        return bool(self.entries)

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """The caller of a request. Raises Unauthenticated.

        Every entry is compared, each in constant time, so that the answer's timing tells nothing about a key.
        """
        if not self.entries:
            return Principal(LOCAL_TENANT)
        presented = hashlib.sha256(_presented_key(headers).encode("utf-8", "surrogatepass")).digest()
        matches = [tenant for tenant, digest in self.entries if hmac.compare_digest(digest, presented)]
        if not matches:
            raise Unauthenticated("This API key is not known.")
        return Principal(matches[0], presented.hex()[:_KEY_NAME_CHARS])


def load_keys(settings: GatewaySettings) -> KeyRing:
    """The ring from ``MEMLOOP_API_KEYS`` (commas) or ``MEMLOOP_API_KEYS_FILE`` (lines, ``#`` comments).

    Raises KeyFileError.
    """
    if settings.api_keys_file is None:
        return _ring(settings.api_keys.get_secret_value().split(","), "entry")
    lines = settings.api_keys_file.read_text("utf-8").splitlines()
    return _ring((line.split("#", 1)[0] for line in lines), f"{settings.api_keys_file}, line")


def _ring(texts: Iterable[str], place: str) -> KeyRing:
    numbered = ((number, text.strip()) for number, text in enumerate(texts, start=1))
    return KeyRing(tuple(_entry(text, f"{place} {number}") for number, text in numbered if text))


def _entry(text: str, place: str) -> tuple[str, bytes]:
    found = _ENTRY.fullmatch(text)
    if found is None:
        raise KeyFileError(f"{place} of the API keys is not tenant:sha256-hex-of-the-key")
    return found["tenant"], bytes.fromhex(found["digest"])


def _presented_key(headers: Mapping[str, str]) -> str:
    credentials = headers.get("authorization")
    if credentials is None:
        return _named(headers.get("x-api-key"))
    found = _CREDENTIALS.fullmatch(credentials)
    if found is None:
        raise Unauthenticated("The Authorization header must be 'Bearer KEY' or 'Token KEY'.")
    return found["key"]


def _named(key: str | None) -> str:
    if not key:
        raise Unauthenticated("No API key: send 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.")
    return key.strip()
