"""Takes an upload's part of the tenant's quota before its first byte is written.

A reservation has the id of its file and lasts until the file is stored or its upload has failed: beside the stored file
it no longer counts. A process that dies leaves it for a minute.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis

from gateway.files.key_names import Keys
from memloop.wire.errors import DependencyError, TooLarge
from memloop_state.link import LUA_CLOCK
from memloop_state.scripts import Script

_LEASE_MS: Final = 60_000

_RESERVE: Final = (
    LUA_CLOCK
    + """
-- KEYS: the tenant's files, its reservations by their end, their bytes, the tenant's bytes
-- ARGV: file, bytes, most files, most bytes, lease ms. Returns reserved, or files or bytes for want of room
for _, over in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms())) do
  redis.call('ZREM', KEYS[2], over)
  redis.call('HDEL', KEYS[3], over)
end
local files, bytes = redis.call('ZCARD', KEYS[1]), tonumber(redis.call('GET', KEYS[4]) or 0) + ARGV[2]
for _, file in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if not redis.call('ZSCORE', KEYS[1], file) then
    files, bytes = files + 1, bytes + (redis.call('HGET', KEYS[3], file) or 0)
  end
end
if files >= tonumber(ARGV[3]) then return 'files' end
if bytes > tonumber(ARGV[4]) then return 'bytes' end
redis.call('ZADD', KEYS[2], string.format('%.0f', now_ms() + ARGV[5]), ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return 'reserved'
"""
)

_EXTEND: Final = (
    LUA_CLOCK
    + """
-- KEYS: reservations, their bytes; ARGV: file, lease ms
redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', now_ms() + ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('PEXPIRE', KEYS[2], ARGV[2])
"""
)

_GIVE_BACK: Final = """
-- KEYS: reservations, their bytes; ARGV: file
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])
"""


@dataclass(frozen=True, slots=True)
class Quota:
    """The most files of a tenant, and the most bytes that its files, texts and read documents hold."""

    files: int
    bytes: int

    def too_many_files(self) -> TooLarge:
        """Return the error of a file for which there is no room."""
        return TooLarge(f"This tenant may have at most {self.files} files.", code="file_quota_exceeded")

    def too_many_bytes(self) -> TooLarge:
        """Return the error of a content for which there is no room."""
        return TooLarge(
            f"This tenant may store at most {self.bytes} bytes. Delete files to free space.",
            code="storage_quota_exceeded",
        )


class Reservations:
    """The reservations of all tenants in one Redis. Methods raise Unavailable when it is unreachable."""

    def __init__(self, redis: Redis, quota: Quota) -> None:
        self._quota = quota
        self._keys = Keys(redis)
        self._reserve = Script(redis, _RESERVE)
        self._extend = Script(redis, _EXTEND)
        self._give_back = Script(redis, _GIVE_BACK)

    @asynccontextmanager
    async def held(self, tenant: str, file_id: str, *, size_bytes: int) -> AsyncGenerator[None]:
        """Hold room for a file during the block. Raises TooLarge without it."""
        here = self._keys.of_name(tenant)
        kept = [here.reserved_files(tenant), here.reserved_bytes(tenant)]
        args = [file_id, size_bytes, self._quota.files, self._quota.bytes, _LEASE_MS]
        outcome = await self._reserve([here.files_of(tenant), *kept, here.blob_bytes(tenant)], args)
        if outcome == "files":
            raise self._quota.too_many_files()
        if outcome == "bytes":
            raise self._quota.too_many_bytes()
        renewing = asyncio.create_task(self._renew(kept, file_id))
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(DependencyError):
                await asyncio.shield(self._give_back(kept, [file_id]))

    async def _renew(self, kept: list[str], file_id: str) -> None:
        while True:
            await asyncio.sleep(_LEASE_MS / 3000)
            with suppress(DependencyError):
                await self._extend(kept, [file_id, _LEASE_MS])
