"""Stores each content once per tenant, by hash, for as long as a job holds it.

Holders are jobs: a file for its bytes (``file:{id}``) and its text (``text:{id}``), a read for its document
(``read:{id}``). A content counts towards the tenant's quota once per holder. An object belongs either to a content
or to the set of *loose* objects, with the time from which it may be deleted: aborted uploads and contents without a
holder end there, and the worker deletes them. The worker also releases holders whose job ended in a crash.
"""

import time
from collections.abc import Sequence
from typing import Final, cast

from redis.asyncio import Redis

from gateway.files.key_names import Keys, Partition
from gateway.files.reservations import Quota
from gateway.files.storage import Storage
from memloop.wire.base import Wire
from memloop_state.link import redis_errors
from memloop_state.scripts import Script, text

_UPLOAD_MAY_TAKE_S: Final = 6 * 3600.0
_FIRST_LOOK_S: Final = 600.0
_NEXT_LOOK_S: Final = 3600.0
_SWEPT_AT_ONCE: Final = 200

_CLAIM = """
-- KEYS: content, tenant's bytes, loose, holders
-- ARGV: holder, place, bytes, most bytes, holder's line, time of its next check. Returns the content's place
local kept = redis.call('HGET', KEYS[1], 'place')
if kept and redis.call('HEXISTS', KEYS[1], 'held:' .. ARGV[1]) == 1 then return kept end
if tonumber(redis.call('GET', KEYS[2]) or 0) + ARGV[3] > tonumber(ARGV[4]) then return false end
if not kept then
  kept = ARGV[2]
  redis.call('HSET', KEYS[1], 'place', kept, 'bytes', ARGV[3])
  redis.call('ZREM', KEYS[3], kept)
end
redis.call('HSET', KEYS[1], 'held:' .. ARGV[1], 1)
redis.call('INCRBY', KEYS[2], ARGV[3])
redis.call('ZADD', KEYS[4], ARGV[6], ARGV[5])
return kept
"""

_RELEASE = """
-- KEYS: content, tenant's bytes, loose, holders; ARGV: holder, now, holder's line
-- Returns the content's place if that was its last holder, else ''
redis.call('ZREM', KEYS[4], ARGV[3])
if redis.call('HDEL', KEYS[1], 'held:' .. ARGV[1]) == 0 then return '' end
local found = redis.call('HMGET', KEYS[1], 'place', 'bytes')
redis.call('DECRBY', KEYS[2], found[2])
if redis.call('HLEN', KEYS[1]) == 2 then
  redis.call('DEL', KEYS[1])
  redis.call('ZADD', KEYS[3], ARGV[2], found[1])
  return found[1]
end
return ''
"""


class Blob(Wire):
    """A content of a tenant: its SHA-256 (hex), size and place."""

    tenant: str
    sha256: str
    size_bytes: int
    place: str


class Blobs:
    """The records of the contents. Methods raise Unavailable and Timeout when Redis or the storage fails."""

    def __init__(self, redis: Redis, storage: Storage, quota: Quota) -> None:
        self._redis = redis
        self._keys = Keys(redis)
        self._quota = quota
        self._claim = Script(redis, _CLAIM, acknowledged=True)
        self._release = Script(redis, _RELEASE)
        self.storage = storage

    async def new_place(self, tenant: str) -> str:
        """Return a place for a new object; it is deleted unless it is claimed within hours."""
        place = self.storage.new_place(tenant)
        with redis_errors():
            await self._redis.zadd(self._keys.of_name(tenant).loose, {place: time.time() + _UPLOAD_MAY_TAKE_S})
        return place

    async def claim(self, written: Blob, *, holder: str) -> Blob:
        """Hold a written content. The returned place differs when the tenant already stores the same content.

        Raises TooLarge over the tenant's quota; the written object is then deleted.
        """
        place = await self._held(written, holder)
        if place != written.place:
            await self.drop(written.place)
        if place is None:
            raise self._quota.too_many_bytes()
        return written.model_copy(update={"place": place})

    async def hold(self, blob: Blob, *, holder: str) -> None:
        """Add a holder to a content that another holder keeps. Raises TooLarge over the tenant's quota."""
        if await self._held(blob, holder) is None:
            raise self._quota.too_many_bytes()

    async def release(self, blob: Blob, *, holder: str) -> None:
        """Release a hold; a content without holders is deleted. Does nothing when it was not held.

        If the deletion fails, the sweep repeats it.
        """
        if place := await self._remove_holder(blob.tenant, blob.sha256, holder):
            await self.drop(place)

    async def drop(self, place: str) -> None:
        """Delete an object that was written but not claimed."""
        await self.storage.delete(place)
        with redis_errors():
            await self._redis.zrem(self._keys.of_name(self.storage.tenant_of(place)).loose, place)

    async def sweep(self) -> int:
        """Release contents held by finished jobs and delete expired objects. Returns the number deleted."""
        return sum([await self._sweep(partition) for partition in self._keys.partitions])

    async def _sweep(self, partition: Partition) -> int:
        for line in await self._due(partition.holders):
            await self._look_at(line)
        places = await self._due(partition.loose)
        for place in places:
            await self.drop(place)
        return len(places)

    async def _held(self, blob: Blob, holder: str) -> str | None:
        line = _line(holder, blob.tenant, blob.sha256)
        args = [holder, blob.place, blob.size_bytes, self._quota.bytes, line, repr(time.time() + _FIRST_LOOK_S)]
        return cast("str | None", await self._claim(self._names(blob.tenant, blob.sha256), args))

    async def _remove_holder(self, tenant: str, sha256: str, holder: str) -> str:
        """Remove the hold. Returns the place of a content that nobody holds any more, which is loose now, or ''."""
        args = [holder, repr(time.time()), _line(holder, tenant, sha256)]
        return cast(str, await self._release(self._names(tenant, sha256), args))

    async def _look_at(self, line: str) -> None:
        holder, tenant, sha256 = line.split(" ")
        kind, job_id = holder.split(":", 1)
        with redis_errors():
            status = await self._redis.hget(self._keys.job(job_id), "status")
        over = status is None or (kind == "read" and text(status) not in {"queued", "in_progress"})
        if over:
            await self._remove_holder(tenant, sha256, holder)
        else:
            with redis_errors():
                await self._redis.zadd(self._keys.of_name(tenant).holders, {line: time.time() + _NEXT_LOOK_S}, xx=True)

    async def _due(self, key: str) -> list[str]:
        with redis_errors():
            due: object = await self._redis.zrangebyscore(  # pyright: ignore[reportUnknownMemberType]
                key, "-inf", time.time(), start=0, num=_SWEPT_AT_ONCE
            )
        return [text(member) for member in cast(Sequence[object], due)]

    def _names(self, tenant: str, sha256: str) -> list[str]:
        """Return the keys that both scripts use."""
        here = self._keys.of_name(tenant)
        return [here.blob(tenant, sha256), here.blob_bytes(tenant), here.loose, here.holders]


def _line(holder: str, tenant: str, sha256: str) -> str:
    return f"{holder} {tenant} {sha256}"
