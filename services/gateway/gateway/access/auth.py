"""Authenticates callers: an API key identifies its tenant and scopes; only the key's hash is stored.

Without any configured key the process serves the tenant ``local`` and listens on the loopback interface only.
"""

import hashlib
import hmac
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

from gateway.access.key_cache import KeyCache
from gateway.access.principal import Principal
from gateway.access.static_keys import Grant
from memloop.wire.errors import Unauthenticated
from memloop.wire.keys import ALL_SCOPES

LOCAL: Final = Principal("local", ALL_SCOPES)
_CREDENTIALS = re.compile(r"\s*(?:Bearer|Token)\s+(?P<key>\S+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Holds all API keys that a caller may present."""

    static: Mapping[bytes, Grant]
    """The operator's keys. If there are none, the API is open."""
    cache: KeyCache
    """The keys created at run time."""

    @property
    def has_keys(self) -> bool:
        """Whether a caller must present a key."""
        return bool(self.static)

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[None]:
        """Follow changes of stored API keys until the block exits, if the API requires keys."""
        async with self.cache.following() if self.has_keys else nullcontext():
            yield

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """Return the caller of a request. Raises Unauthenticated, and Unavailable when the key cannot be checked.

        Keys are looked up by hash. The lookup's timing may leak bits of stored hashes, but not of keys: a caller cannot
        choose a key by its hash.
        """
        if not self.has_keys:
            return LOCAL
        presented = hashlib.sha256(_presented_key(headers).encode("utf-8", "surrogatepass")).digest()
        static = self.static.get(presented)
        grant = static or self.cache.find(presented)
        if grant is None or not hmac.compare_digest(grant.digest, presented):
            raise Unauthenticated("Invalid API key.")
        now = time.time()
        if now >= grant.principal.expires_at:
            raise Unauthenticated("This API key has expired.", code="api_key_expired")
        if static is None:
            self.cache.used(grant, now)
        return grant.principal


def _presented_key(headers: Mapping[str, str]) -> str:
    credentials = headers.get("authorization")
    if credentials is None:
        key = headers.get("x-api-key")
        if not key:
            raise Unauthenticated("Missing API key: send 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.")
        return key.strip()
    found = _CREDENTIALS.fullmatch(credentials)
    if found is None:
        raise Unauthenticated("The Authorization header must be 'Bearer KEY' or 'Token KEY'.")
    return found["key"]
