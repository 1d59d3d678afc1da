"""Finds the caller of a request by its API key, and what the caller may do.

An API key identifies its tenant and scopes; only the key's hash is stored. Without any configured key the process
serves the tenant ``local`` and listens on the loopback interface only.

All stored keys are in memory, by hash: checking a key reads no state, even in a flood of wrong keys. The cache follows
the change log and applies each change within milliseconds. While the state is unreachable, unknown keys get 503; after
``stale_s`` seconds all keys do.
"""

import asyncio
import hashlib
import logging
import math
import re
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.access.key_records import KeyRecord, KeyRecords
from memloop.chores import alongside
from memloop.wire.errors import DependencyError, Forbidden, Unauthenticated, Unavailable
from memloop.wire.keys import ALL_SCOPES, Scope

NEVER: Final = float("inf")
_CREDENTIALS = re.compile(r"\s*(?:Bearer|Token)\s+(?P<key>\S+)\s*", re.IGNORECASE)
_RETRY_S: Final = 1.0
_USES_EVERY_S: Final = 60.0
_LOG = logging.getLogger(__name__)


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


LOCAL: Final = Principal("local", ALL_SCOPES)
"""Every caller, where no keys are configured."""


class KeyRing:
    """Holds all API keys that a caller may present: the operator's in ``static``, by SHA-256, and those in the records.

    Without any in ``static`` the API is open. ``wait_s`` bounds one blocking read of the change log. ``clock`` returns
    monotonic seconds.
    """

    def __init__(
        self,
        static: Mapping[bytes, Principal],
        records: KeyRecords,
        *,
        wait_s: float,
        stale_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._static = static
        self._records = records
        self._wait_ms = int(wait_s * 1000)
        self._stale_s = stale_s
        self._clock = clock
        self._principals: dict[bytes, Principal] = {}
        self._digests: dict[str, tuple[bytes, ...]] = {}
        self._fresh_at = -NEVER
        self._reachable = False
        self._log_end = ""
        self._used_at: dict[str, int] = {}
        self._uses_kept_at = clock()

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """Return the caller of a request. Raises Unauthenticated, and Unavailable when the key cannot be checked.

        Keys are looked up by hash. The lookup's timing may leak bits of stored hashes, but not of keys: a caller cannot
        choose a key by its hash.
        """
        if not self._static:
            return LOCAL
        presented = hashlib.sha256(_presented_key(headers).encode("utf-8", "surrogatepass")).digest()
        static = self._static.get(presented)
        principal = static or self.find(presented)
        if principal is None:
            raise Unauthenticated("Invalid API key.")
        now = time.time()
        if now >= principal.expires_at:
            raise Unauthenticated("This API key has expired.", code="api_key_expired")
        if static is None:
            self._used_at[principal.key] = int(now)  # stored once a minute
        return principal

    def find(self, digest: bytes) -> Principal | None:
        """Return who a stored key of this SHA-256 is, or None if unknown. Raises Unavailable when it is too old."""
        found = self._principals.get(digest)
        if found is None and self._reachable:
            return None
        if found is None or self._clock() - self._fresh_at > self._stale_s:
            raise Unavailable("API keys cannot be checked now.", code="keys_unavailable", retry_after_s=2)
        return found

    def apply(self, key_id: str, record: KeyRecord | None) -> None:
        """Apply a change: ``record`` is the key's new state, None if it was revoked."""
        for digest in self._digests.pop(key_id, ()):
            del self._principals[digest]
        if record is None:
            self._used_at.pop(key_id, None)
            return
        found = dict(_principals(record))
        self._digests[key_id] = tuple(found)
        self._principals |= found

    def reset(self, records: Sequence[KeyRecord]) -> None:
        """Replace all stored keys with ``records``."""
        self._principals, self._digests = {}, {}
        for record in records:
            self.apply(record.id, record)
        self._mark_fresh()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Load the stored keys and follow their changes until the block exits, if the API requires keys.

        Retries while the state is unreachable.
        """
        if not self._static:
            yield
            return
        with suppress(DependencyError):
            await self._load()
        try:
            async with alongside(self._follow()):
                yield
        finally:
            with suppress(DependencyError):
                await self._keep_uses()

    async def _follow(self) -> None:
        while True:
            try:
                if not self._reachable:
                    await self._load()
                self._log_end, changed = await self._records.changes(self._log_end, wait_ms=self._wait_ms)
                ids: Sequence[str] = list(dict.fromkeys(changed))
                for key_id, record in zip(ids, await self._records.some(ids), strict=True):
                    self.apply(key_id, record)
                self._mark_fresh()
                if self._clock() - self._uses_kept_at > _USES_EVERY_S:
                    await self._keep_uses()
            except DependencyError as error:
                self._reachable = False
                _LOG.warning("API keys: %s", error.message)
                await asyncio.sleep(_RETRY_S)

    async def _load(self) -> None:
        """Read all keys. The log's end is read first, so that changes made meanwhile are applied afterwards."""
        self._log_end = await self._records.newest_change()
        self.reset(await self._records.all())

    def _mark_fresh(self) -> None:
        self._fresh_at = self._clock()
        self._reachable = True

    async def _keep_uses(self) -> None:
        used_at, self._used_at = self._used_at, {}
        self._uses_kept_at = self._clock()
        await self._records.note_uses({key_id: at for key_id, at in used_at.items() if key_id in self._digests})


def _principals(record: KeyRecord) -> Iterator[tuple[bytes, Principal]]:
    """Yield who a key's secrets are, by digest: the newest, and the previous one while both are valid."""
    ends_at = NEVER if record.expires_at is None else float(record.expires_at)
    principal = Principal(record.tenant, frozenset(record.scopes), key=record.id, expires_at=ends_at)
    yield bytes.fromhex(record.digest), principal
    if record.old_digest is not None and record.old_until is not None:
        old = replace(principal, expires_at=min(ends_at, float(record.old_until)))
        yield bytes.fromhex(record.old_digest), old


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
