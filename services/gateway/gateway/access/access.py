"""Bundles API keys, rate limits, admission and the audit log into one value, and applies them to requests.

An API key identifies its tenant and scopes; only the key's hash is stored. Without any configured key the process
serves the tenant ``local`` and listens on the loopback interface only.

Without the state the rate limits are not enforced: requests go on, and ``rate_limit_skipped_total`` counts them.
Admission, which protects the process itself, does not need the state.
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
from gateway.access.estimates import estimate_tokens
from gateway.access.key_cache import KeyCache
from gateway.access.key_records import KeyRecords
from gateway.access.principal import Grant, Principal, load_static_keys
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from memloop.chores import patient
from memloop.ports import Splitter
from memloop.sse import data_of
from memloop.wire.errors import DependencyError, RateLimited, Unauthenticated
from memloop.wire.keys import ALL_SCOPES
from memloop_service import RESPONSE_HEADERS
from memloop_service.http import Admission, Capacity, object_in, parsed_object
from memloop_state.link import State
from memloop_state.room import UNLIMITED, RateLimits, Rates, Standing

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
    return Access(
        keys=KeyRing(load_static_keys(settings), cache),
        records=records,
        auditor=Auditor(AuditLog(state)),
        admission=admission,
        rates=Rates(state, RateLimits(settings.requests_per_minute, settings.tokens_per_minute)),
        counting=counting,
        metrics=metrics,
        rates_timeout_s=settings.enqueue_timeout_s,
    )


def access_of(request: Request) -> Access:
    """Return the slice from the application's state."""
    return cast(Access, request.app.state.access)


_TOTALS = (("total_tokens",), ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


class Allowance:
    """Tracks one request against its key's limits. ``state`` is the request's, in its ASGI scope."""

    def __init__(self, state: dict[str, object], access: Access, principal: Principal) -> None:
        self._state = state
        self._access = access
        self._bucket = principal.bucket
        self._standing: Standing | None = None
        self._spent: int | None = None
        self._events = 0
        self._more = 0

    async def admit(self, *asked: object, more_tokens: int = 0) -> None:
        """Count the request and its estimated tokens plus ``more_tokens``. Raises RateLimited (429)."""
        rates = self._access.rates
        if rates.limits == UNLIMITED:
            return
        tokens = more_tokens + await estimate_tokens(asked, self._access.counting()) if rates.limits.tokens else 0
        try:
            async with patient(self._access.rates_timeout_s):
                standing = await rates.admit(self._bucket, tokens=tokens)
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()
            return
        self._state[RESPONSE_HEADERS] = _headers(standing, rates.limits)
        if standing.wait_s > 0:
            kind = "requests" if standing.wait_requests_s >= standing.wait_tokens_s else "tokens"
            message = f"This key has exceeded its limit of {kind} per minute."
            raise RateLimited(message, code="rate_limit_exceeded", retry_after_s=standing.wait_s)
        self._standing = standing

    def usage(self, given: object) -> None:
        """Record the engine's token count if ``given`` contains one."""
        fields = object_in(given)
        for names in _TOTALS:
            counts = [fields.get(name) for name in names]
            if all(isinstance(count, int) for count in counts):
                self.spend(sum(cast(list[int], counts)))
                return

    def spend(self, tokens: int) -> None:
        """Record the total number of tokens that the request used."""
        self._spent = tokens

    def spend_more(self, tokens: int) -> None:
        """Add tokens that are not part of the answer itself."""
        self._more += tokens

    @property
    def counts_tokens(self) -> bool:
        """Whether the key has a token limit, so every stream event must be counted."""
        return self._standing is not None and self._access.rates.limits.tokens > 0

    def streamed(self, event: bytes) -> None:
        """Count a stream event as one token, or take the total from the event's ``usage`` field."""
        if not self.counts_tokens:
            return
        self._events += 1
        if b'"usage"' in event:
            chunk = parsed_object(data_of(event))
            self.usage(chunk.get("usage") or object_in(chunk.get("response")).get("usage"))

    async def settle(self, *, failed: bool) -> None:
        """Replace the estimate with the tokens used. A request that failed before it used any costs none."""
        standing, self._standing = self._standing, None
        if standing is None or not self._access.rates.limits.tokens:
            return
        spent = self._spent
        if spent is None:
            spent = 0 if failed and not self._events else standing.charged + self._events
        try:
            async with patient(self._access.rates_timeout_s):
                await self._access.rates.settle(self._bucket, standing, spent=spent + self._more)
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()


def _headers(standing: Standing, limits: RateLimits) -> dict[str, str]:
    """Return OpenAI's ``x-ratelimit-*`` headers for the limits that are set."""
    rows = (
        ("requests", limits.requests, standing.used_requests, standing.reset_requests_s),
        ("tokens", limits.tokens, standing.used_tokens, standing.reset_tokens_s),
    )
    found: dict[str, str] = {}
    for kind, limit, used, reset_s in rows:
        if limit > 0:
            found[f"x-ratelimit-limit-{kind}"] = str(limit)
            found[f"x-ratelimit-remaining-{kind}"] = str(max(0, limit - used))
            found[f"x-ratelimit-reset-{kind}"] = f"{reset_s}s"
    return found
