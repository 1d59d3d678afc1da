"""Bundles API keys, rate limits, admission and the audit log into one value.

Authenticates callers: an API key identifies its tenant and scopes; only the key's hash is stored.

Without any configured key the process serves the tenant ``local`` and listens on the loopback interface only.
"""

import hashlib
import hmac
import math
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, cast

from fastapi import Request

from gateway.access.audit import AuditLog, Auditor
from gateway.access.key_cache import KeyCache
from gateway.access.key_records import KeyRecords
from gateway.access.principal import Grant, Principal, load_static_keys
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from memloop.ports import Splitter
from memloop.wire.errors import Unauthenticated
from memloop.wire.keys import ALL_SCOPES
from memloop_service.http import Admission, Capacity
from memloop_state.link import State
from memloop_state.room import RateLimits, Rates

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


@dataclass(frozen=True, slots=True)
class Access:
    """Decides who may call and how much. ``counting`` returns what counts a request's tokens before the engine does."""

    keys: KeyRing
    records: KeyRecords
    auditor: Auditor
    admission: Admission
    rates: Rates
    counting: Callable[[], Splitter]
    metrics: Metrics
    rates_timeout_s: float

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Follow key changes and write the audit log until the block exits."""
        async with self.auditor.keeping(), self.keys.followed():
            yield


def open_access(
    settings: GatewaySettings, state: State, *, counting: Callable[[], Splitter], metrics: Metrics
) -> Access:
    """Build the slice from the settings. Raises KeyFileError on bad keys."""
    records = KeyRecords(state)
    cache = KeyCache(records, wait_s=settings.look_s, stale_s=settings.keys_stale_s)
    return Access(
        keys=KeyRing(load_static_keys(settings), cache),
        records=records,
        auditor=Auditor(AuditLog(state)),
        admission=_admission(settings, metrics),
        rates=Rates(state, RateLimits(settings.requests_per_minute, settings.tokens_per_minute)),
        counting=counting,
        metrics=metrics,
        rates_timeout_s=settings.enqueue_timeout_s,
    )


def access_of(request: Request) -> Access:
    """Return the slice from the application's state."""
    return cast(Access, request.app.state.access)


def _admission(settings: GatewaySettings, metrics: Metrics) -> Admission:
    capacity = Capacity(
        requests=settings.max_active_requests,
        batch=settings.max_batch_requests,
        body_bytes=settings.max_active_bytes,
    )
    share = settings.tenant_share if load_static_keys(settings) else 1.0
    of_tenant = Capacity(
        requests=math.ceil(share * capacity.requests),
        batch=math.ceil(share * capacity.batch),
        body_bytes=max(int(share * capacity.body_bytes), settings.max_body_bytes),
    )
    admission = Admission(capacity, of_tenant, lambda limit: metrics.refused_requests.labels(limit).inc())
    metrics.watch_admission(admission)
    return admission
