"""The bytes that unfinished jobs hold, and the dead letters whose jobs have expired.

A job holds bytes of its tenant's quota from its queueing to its end. A dead letter that can be requeued keeps its
payload, and so its bytes. Redis deletes its job when it expires; the sweep then releases the bytes and deletes the
letter and its entry in the user's list.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from redis.asyncio import Redis

from gateway.queue.key_names import JobPartition, Keys
from memloop_service.redis_link import redis_errors
from memloop_service.redis_scripts import Script, entry_list, text

_LOOKED_AT: Final = 1000
_DROP = """
-- KEYS: dead letters, the job of one, the tenants' bytes, the job's index (may be missing)
-- ARGV: entry, job id, tenant, bytes. Deletes the entry of a dead letter whose job has expired. Returns 1 if it did
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
if KEYS[4] then redis.call('ZREM', KEYS[4], ARGV[2]) end
if redis.call('HEXISTS', KEYS[3], ARGV[3]) == 1 and redis.call('HINCRBY', KEYS[3], ARGV[3], -ARGV[4]) <= 0 then
  redis.call('HDEL', KEYS[3], ARGV[3])
end
return 1
"""


@dataclass(frozen=True, slots=True)
class QueuedBytes:
    """The bytes that the unfinished jobs of all queues hold: of all tenants, and of the one with the most."""

    total: int
    largest_tenant: int


async def queued_bytes(redis: Redis) -> QueuedBytes:
    """Add up the bytes of every tenant. Raises Unavailable."""
    tenants: Counter[str] = Counter()
    for partition in Keys(redis).partitions:
        with redis_errors():
            found = cast(Mapping[object, object], await redis.hgetall(partition.queued_bytes))
        tenants.update({text(tenant): int(text(size)) for tenant, size in found.items()})
    return QueuedBytes(tenants.total(), max(tenants.values(), default=0))


class ExpiredLetters:
    """Deletes the dead letters of all queues whose jobs have expired. Remembers how far it has looked."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._partitions = Keys(redis).partitions
        self._after = dict.fromkeys(self._partitions, "-")
        self._drop = Script(redis, _DROP)

    async def sweep(self) -> int:
        """Look at the next thousand letters of each partition. Returns how many were deleted. Raises Unavailable."""
        return sum([await self._sweep(partition) for partition in self._partitions])

    async def _sweep(self, partition: JobPartition) -> int:
        with redis_errors():
            page = cast(
                Sequence[object],
                await self._redis.xrange(partition.dead, min=self._after[partition], count=_LOOKED_AT),
            )
        letters = entry_list(page)
        self._after[partition] = f"({letters[-1][0]}" if len(letters) == _LOOKED_AT else "-"
        return sum([await self._dropped(partition, entry, letter) for entry, letter in letters])

    async def _dropped(self, partition: JobPartition, entry: str, letter: Mapping[str, str]) -> int:
        job_id, index = letter["job"], letter.get("index", "")
        keys = [partition.dead, partition.job(job_id), partition.queued_bytes, *([index] if index else [])]
        return await self._drop.number(keys, [entry, job_id, letter.get("tenant", ""), letter.get("bytes", "0")])
