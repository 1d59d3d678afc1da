"""Bundles API keys, rate limits, admission and the audit log into one value, and reads the operator's keys for it.

An operator's key is ``tenant:sha256 scopes=chat+admin expires=2027-01-01``, in the environment or a file. Such keys
work without the state and bootstrap all others. Without ``scopes`` a key has every scope except ``admin``; a key with
``admin`` is an operator key and may manage the keys of every tenant.
"""

import math
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from gateway.access.audit import Auditor
from gateway.access.key_records import KeyRecords
from gateway.access.keys import NEVER, KeyRing, Principal
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from memloop.ports import Splitter
from memloop.wire.fields import aware
from memloop.wire.keys import ALL_SCOPES, DEFAULT_SCOPES, TENANT_PATTERN, Scope
from memloop_service.http import Admission, Capacity
from memloop_state.link import State
from memloop_state.room import RateLimits, Rates


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
        async with self.auditor.keeping(), self.keys.following():
            yield


def open_access(
    settings: GatewaySettings, state: State, *, counting: Callable[[], Splitter], metrics: Metrics
) -> Access:
    """Build the slice from the settings. Raises KeyFileError on bad keys."""
    records = KeyRecords(state)
    static = load_static_keys(settings)
    capacity = Capacity(
        requests=settings.max_active_requests, batch=settings.max_batch_requests, body_bytes=settings.max_active_bytes
    )
    share = settings.tenant_share if static else 1.0
    of_tenant = Capacity(
        requests=math.ceil(share * capacity.requests),
        batch=math.ceil(share * capacity.batch),
        body_bytes=max(int(share * capacity.body_bytes), settings.max_body_bytes),
    )
    admission = Admission(capacity, of_tenant, lambda limit: metrics.refused_requests.labels(limit).inc())
    metrics.watch_admission(admission)
    return Access(
        keys=KeyRing(static, records, wait_s=settings.look_s, stale_s=settings.keys_stale_s),
        records=records,
        auditor=Auditor(state),
        admission=admission,
        rates=Rates(state, RateLimits(settings.requests_per_minute, settings.tokens_per_minute)),
        counting=counting,
        metrics=metrics,
        rates_timeout_s=settings.enqueue_timeout_s,
    )


_KEY_NAME_CHARS: Final = 16
_ENTRY = re.compile(
    rf"(?P<tenant>{TENANT_PATTERN}):(?P<digest>[0-9a-fA-F]{{64}})"
    r"(\s+scopes=(?P<scopes>\S+))?(\s+expires=(?P<expires>\S+))?"
)
_FORM = "tenant:sha256-hex-of-the-key [scopes=chat+memory:read+…] [expires=2027-01-01]"


class KeyFileError(ValueError):
    """A key entry that cannot be parsed. The message names its position, never its content."""


def load_static_keys(settings: GatewaySettings) -> Mapping[bytes, Principal]:
    """Load ``MEMLOOP_API_KEYS`` (comma-separated) or ``MEMLOOP_API_KEYS_FILE`` (lines, ``#`` comments), by digest.

    The first entry of a digest wins. Raises KeyFileError.
    """
    if settings.api_keys_file is None:
        return _principals(settings.api_keys.get_secret_value().split(","), "entry")
    lines = settings.api_keys_file.read_text("utf-8").splitlines()
    return _principals((line.split("#", 1)[0] for line in lines), f"{settings.api_keys_file}, line")


def _principals(texts: Iterable[str], place: str) -> Mapping[bytes, Principal]:
    found: dict[bytes, Principal] = {}
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
        digest, ends_at = bytes.fromhex(entry["digest"]), NEVER
        if entry["expires"] is not None:
            try:
                moment = datetime.fromisoformat(entry["expires"])
            except ValueError:
                raise KeyFileError(f"{where} has an invalid date or time after expires=") from None
            ends_at = aware(moment).timestamp()
        key, is_operator = digest.hex()[:_KEY_NAME_CHARS], "admin" in scopes
        principal = Principal(entry["tenant"], scopes, key=key, is_operator=is_operator, expires_at=ends_at)
        found.setdefault(digest, principal)
    return found
