"""Bundles API keys, rate limits, admission and the audit log into one value."""

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

from fastapi import Request

from gateway.access.audit import AuditLog, Auditor
from gateway.access.auth import KeyRing
from gateway.access.key_cache import KeyCache
from gateway.access.key_records import KeyRecords
from gateway.access.static_keys import load_static_keys
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from memloop.ports import Splitter
from memloop_service.http import Admission, Capacity
from memloop_state.link import State
from memloop_state.rates import RateLimits, Rates


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
