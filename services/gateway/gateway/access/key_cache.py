"""Caches all stored API keys in memory, by hash.

Checking a key reads no state, even in a flood of wrong keys. The cache follows the change log and applies each
change within milliseconds. While the state is unreachable, unknown keys get 503; after ``stale_s`` seconds all keys do.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from gateway.access.key_records import KeyRecord, KeyRecords
from gateway.access.principal import NEVER, Grant, Principal
from memloop.chores import alongside
from memloop.wire.errors import DependencyError, Unavailable

_LOG = logging.getLogger(__name__)
_RETRY_S: Final = 1.0
_USES_EVERY_S: Final = 60.0


class KeyCache:
    """Holds the keys in memory. ``wait_s`` bounds one blocking read of the change log.

    ``clock`` returns monotonic seconds.
    """

    def __init__(
        self, records: KeyRecords, *, wait_s: float, stale_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._records = records
        self._wait_ms = int(wait_s * 1000)
        self._stale_s = stale_s
        self._clock = clock
        self._grants: dict[bytes, Grant] = {}
        self._digests: dict[str, tuple[bytes, ...]] = {}
        self._fresh_at = -NEVER
        self._reachable = False
        self._log_end = ""
        self._used_at: dict[str, int] = {}
        self._uses_kept_at = clock()

    def find(self, digest: bytes) -> Grant | None:
        """Return the grant of a secret's digest, or None if unknown. Raises Unavailable when the cache is stale."""
        grant = self._grants.get(digest)
        if grant is None and self._reachable:
            return None
        if grant is None or self._clock() - self._fresh_at > self._stale_s:
            raise Unavailable("API keys cannot be checked now.", code="keys_unavailable", retry_after_s=2)
        return grant

    def used(self, grant: Grant, now: float) -> None:
        """Record that a key was used; uses are stored once a minute."""
        self._used_at[grant.principal.key] = int(now)

    def apply(self, key_id: str, record: KeyRecord | None) -> None:
        """Apply a change: ``record`` is the key's new state, None if it was revoked."""
        for digest in self._digests.pop(key_id, ()):
            del self._grants[digest]
        if record is None:
            self._used_at.pop(key_id, None)
            return
        grants = tuple(_grants(record))
        self._digests[key_id] = tuple(grant.digest for grant in grants)
        self._grants.update((grant.digest, grant) for grant in grants)

    def reset(self, records: Sequence[KeyRecord]) -> None:
        """Replace all cached keys with ``records``."""
        self._grants, self._digests = {}, {}
        for record in records:
            self.apply(record.id, record)
        self._mark_fresh()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Load the keys and follow changes until the block exits. Retries while the state is unreachable."""
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


def _grants(record: KeyRecord) -> Iterator[Grant]:
    """Yield the grants of a key's secrets: the newest, and the previous one while both are valid."""
    ends_at = NEVER if record.expires_at is None else float(record.expires_at)
    principal = Principal(record.tenant, frozenset(record.scopes), key=record.id, expires_at=ends_at)
    yield Grant(bytes.fromhex(record.digest), principal)
    if record.old_digest is not None and record.old_until is not None:
        old = replace(principal, expires_at=min(ends_at, float(record.old_until)))
        yield Grant(bytes.fromhex(record.old_digest), old)
