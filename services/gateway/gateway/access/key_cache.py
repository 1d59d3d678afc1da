"""What one process knows of the keys in Redis: all of them, by hash, in memory.

So a request's key costs no call to Redis, and neither does a flood of wrong ones. The process waits at the log of
changes and hears of each within milliseconds. When it cannot reach Redis, keys that it does not know are refused (503),
and after ``stale_s`` seconds all of them.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from gateway.access.key_records import KeyRecord, KeyRecords
from gateway.access.principal import Principal
from gateway.access.static_keys import NEVER, Grant
from memloop.wire.errors import DependencyError, Unavailable

_LOG = logging.getLogger(__name__)
_RETRY_S: Final = 1.0
_USES_EVERY_S: Final = 60.0


class KeyCache:
    """The keys in memory. ``wait_s``: how long one look at the log of changes waits, below the time limit of Redis.

    ``clock`` gives seconds that never run backwards.
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
        self._heard_at = -NEVER
        self._reachable = False
        self._log_end = ""
        self._used_at: dict[str, int] = {}
        self._uses_kept_at = clock()

    def find(self, digest: bytes) -> Grant | None:
        """What the secret stands for; None when nobody knows it. Raises Unavailable when that cannot be told."""
        grant = self._grants.get(digest)
        if grant is None and self._reachable:
            return None
        if grant is None or self._clock() - self._heard_at > self._stale_s:
            raise Unavailable("API keys cannot be checked now.", code="keys_unavailable", retry_after_s=2)
        return grant

    def used(self, grant: Grant, now: float) -> None:
        """Remember that a key was used; it is written down once a minute."""
        self._used_at[grant.principal.key] = int(now)

    def apply(self, key_id: str, record: KeyRecord | None) -> None:
        """Take a change in: the key as it is now, None when it is revoked."""
        for digest in self._digests.pop(key_id, ()):
            del self._grants[digest]
        if record is None:
            self._used_at.pop(key_id, None)
            return
        grants = tuple(_grants(record))
        self._digests[key_id] = tuple(grant.digest for grant in grants)
        self._grants.update((grant.digest, grant) for grant in grants)

    def reset(self, records: Sequence[KeyRecord]) -> None:
        """Know these keys and no others."""
        self._grants, self._digests = {}, {}
        for record in records:
            self.apply(record.id, record)
        self._heard()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Know the keys, and hear of changes, meanwhile. A Redis that is gone is waited for."""
        with suppress(DependencyError):
            await self._load()
        follow = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            follow.cancel()
            await asyncio.wait({follow})
            with suppress(DependencyError):
                await self._keep_uses()

    async def _follow(self) -> None:
        while True:
            try:
                if not self._reachable:
                    await self._load()
                await self._hear()
                if self._clock() - self._uses_kept_at > _USES_EVERY_S:
                    await self._keep_uses()
            except DependencyError as error:
                self._reachable = False
                _LOG.warning("API keys: %s", error.message)
                await asyncio.sleep(_RETRY_S)

    async def _load(self) -> None:
        """Read all keys. What changes meanwhile is heard afterwards, for the log's end is taken first."""
        self._log_end = await self._records.newest_change()
        self.reset(await self._records.all())

    async def _hear(self) -> None:
        self._log_end, changed = await self._records.changes(self._log_end, wait_ms=self._wait_ms)
        ids: Sequence[str] = list(dict.fromkeys(changed))
        for key_id, record in zip(ids, await self._records.some(ids), strict=True):
            self.apply(key_id, record)
        self._heard()

    def _heard(self) -> None:
        self._heard_at = self._clock()
        self._reachable = True

    async def _keep_uses(self) -> None:
        used_at, self._used_at = self._used_at, {}
        self._uses_kept_at = self._clock()
        await self._records.note_uses({key_id: at for key_id, at in used_at.items() if key_id in self._digests})


def _grants(record: KeyRecord) -> Iterator[Grant]:
    """What the key's secrets stand for: the newest, and the one before while both work."""
    principal = Principal(record.tenant, frozenset(record.scopes), key=record.id)
    ends_at = NEVER if record.expires_at is None else float(record.expires_at)
    yield Grant(bytes.fromhex(record.digest), principal, ends_at)
    if record.old_digest is not None and record.old_until is not None:
        yield Grant(bytes.fromhex(record.old_digest), principal, min(ends_at, float(record.old_until)))
