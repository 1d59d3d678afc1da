"""Stores traces in Redis while a tenant's switch is on.

All traces of a tenant are in one partition. A trace is deleted by age, by the tenant's cap (oldest first), with its
read, when an owner is erased, and when the switch is turned off.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from redis.asyncio import Redis

from memloop.wire.traces import TraceSettings
from memloop_state import partitions
from memloop_state.link import acknowledged, redis_errors
from memloop_state.owners import OWNERS, Owner, owned_args, owned_keys
from memloop_state.scripts import Script, text

KIND: Final = "traces"
"""What traces are among the records of their owners."""

_KEEP: Final = (
    OWNERS
    + """
-- KEYS: switch, index, body, those of its owners; ARGV: id, ms, trace, keep ms, cap, its owners
-- Returns 'off', 'erased', or 'kept' and the ids over the cap, whose bodies the caller deletes
if redis.call('EXISTS', KEYS[1]) == 0 then return {'off'} end
if is_erased(4, 6) then return {'erased'} end
redis.call('HSET', KEYS[3], 'trace', ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
own(4, 6, KEYS[3])
end_with_records(KEYS[3])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2] - ARGV[4])) do
  redis.call('ZREM', KEYS[2], id)
end
local reply, over = {'kept'}, redis.call('ZCARD', KEYS[2]) - ARGV[5]
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, over - 1)) do
    redis.call('ZREM', KEYS[2], id)
    table.insert(reply, id)
  end
end
return reply
"""
)

_FORGET: Final = (
    OWNERS
    + """
-- KEYS: index, body; ARGV: id. Returns how many were deleted
redis.call('ZREM', KEYS[1], ARGV[1])
disown(KEYS[2])
return redis.call('DEL', KEYS[2])
"""
)


@dataclass(frozen=True, slots=True)
class Partition(partitions.Partition):
    """The keys under one tag."""

    def trace_switch(self, tenant: str) -> str:
        """Name the switch that keeps a tenant's traces."""
        return self.key("trace-switch", tenant)

    def traces_of(self, tenant: str) -> str:
        """Name the sorted set of the tenant's traces, by time."""
        return self.key("traces", tenant)

    def trace(self, tenant: str, trace_id: str) -> str:
        """Name the hash of a trace."""
        return self.key("trace", tenant, trace_id)


class TraceRecords:
    """Every tenant's traces. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, *, keep_s: float, most: int) -> None:
        self._redis = redis
        self._keep_ms = int(keep_s * 1000)
        self._most = most
        self._keep = Script(redis, _KEEP)
        self._forget = Script(redis, _FORGET, acknowledged=True)
        self._partitions = partitions.Partitions(redis, Partition)

    async def enabled(self, tenant: str) -> bool:
        """Return whether the tenant's traces are kept."""
        with redis_errors():
            return bool(await self._redis.exists(self._at(tenant).trace_switch(tenant)))

    async def enable(self, tenant: str) -> None:
        """Keep the tenant's traces from now on."""
        with redis_errors():
            await acknowledged(self._redis, "SET", self._at(tenant).trace_switch(tenant), "1")

    async def disable(self, tenant: str) -> int:
        """Stop keeping traces and delete the stored ones. Returns the number deleted."""
        with redis_errors():
            await self._redis.delete(self._at(tenant).trace_switch(tenant))  # first, so that no more are added
        ids = await self._ids(tenant)
        for id_ in ids:
            await self.forget_one(tenant, id_)
        return len(ids)

    async def settings(self, tenant: str) -> TraceSettings:
        """Return the switch's state and the number of stored traces."""
        kept = len(await self._ids(tenant))
        return TraceSettings(tenant=tenant, enabled=await self.enabled(tenant), kept=kept, keep_s=self._keep_ms // 1000)

    async def keep(self, trace_id: str, trace: str, *, tenant: str, owners: Sequence[Owner]) -> str:
        """Store a trace (JSON), replacing one with its id. Returns ``kept``, ``off`` or ``erased``."""
        here = self._at(tenant)
        keys = [here.trace_switch(tenant), here.traces_of(tenant), here.trace(tenant, trace_id)]
        args = [trace_id, int(time.time() * 1000), trace, self._keep_ms, self._most]
        owned = owned_args(owners, kind=KIND, record_id=trace_id)
        outcome, *over = await self._keep.rows([*keys, *owned_keys(here, owners)], [*args, *owned])
        for id_ in over:
            await self.forget_one(tenant, id_)
        return outcome

    async def all(self, tenant: str) -> AsyncGenerator[str]:
        """Yield the tenant's traces as JSON, oldest first."""
        for id_ in await self._ids(tenant):
            with redis_errors():
                raw = await self._redis.hget(self._at(tenant).trace(tenant, id_), "trace")
            if raw is not None:
                yield text(raw)

    async def forget_one(self, tenant: str, trace_id: str) -> int:
        """Delete one trace. Returns the number deleted, 0 or 1."""
        here = self._at(tenant)
        return await self._forget.number([here.traces_of(tenant), here.trace(tenant, trace_id)], [trace_id])

    def _at(self, tenant: str) -> Partition:
        return self._partitions.of_name(tenant)

    async def _ids(self, tenant: str) -> list[str]:
        index = self._at(tenant).traces_of(tenant)
        oldest = int(time.time() * 1000) - self._keep_ms
        with redis_errors():
            found: Any = await self._redis.zrangebyscore(index, oldest, "+inf")  # pyright: ignore[reportUnknownMemberType]
        return [text(id_) for id_ in cast(list[object], found)]
