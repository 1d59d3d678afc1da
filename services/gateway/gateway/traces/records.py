"""Stores traces in Redis while a tenant's switch is on.

All keys of a tenant share its name as hash tag, so the scripts work on a cluster too. A trace is deleted by age, by the
tenant's cap (oldest first), with its namespace or read, and when the switch is turned off.
"""

import time
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

from redis.asyncio import Redis

from memloop.wire.memory import Namespace
from memloop.wire.traces import TraceSettings
from memloop_service.redis_link import acknowledged, redis_errors
from memloop_service.redis_scripts import Script, text

_NO_USER: Final = ""

_KEEP = """
-- KEYS: switch, index, body, the user's index; ARGV: id, ms, trace, agent, run, keep ms, cap, user or ''
-- Returns 'off', or 'kept' and the ids over the cap, whose bodies the caller deletes
if redis.call('EXISTS', KEYS[1]) == 0 then return {'off'} end
redis.call('HSET', KEYS[3], 'trace', ARGV[3], 'agent_id', ARGV[4], 'run_id', ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if ARGV[8] ~= '' then
  redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[4], ARGV[6])
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2] - ARGV[6])) do
  redis.call('ZREM', KEYS[2], id)
end
local reply, over = {'kept'}, redis.call('ZCARD', KEYS[2]) - ARGV[7]
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, over - 1)) do
    redis.call('ZREM', KEYS[2], id)
    table.insert(reply, id)
  end
end
return reply
"""


class TraceRecords:
    """Every tenant's traces. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, *, keep_s: float, most: int) -> None:
        self._redis = redis
        self._keep_ms = int(keep_s * 1000)
        self._most = most
        self._keep = Script(redis, _KEEP)

    async def enabled(self, tenant: str) -> bool:
        """Return whether the tenant's traces are kept."""
        with redis_errors():
            return bool(await self._redis.exists(trace_switch(tenant)))

    async def enable(self, tenant: str) -> None:
        """Keep the tenant's traces from now on."""
        with redis_errors():
            await acknowledged(self._redis, "SET", trace_switch(tenant), "1")

    async def disable(self, tenant: str) -> int:
        """Stop keeping traces and delete the stored ones. Returns the number deleted."""
        with redis_errors():
            await self._redis.delete(trace_switch(tenant))  # first, so that no more are added
            found: Any = await self._redis.zrange(traces_of(tenant), 0, -1)  # pyright: ignore[reportUnknownMemberType]
            bodies = [trace_body(tenant, text(id_)) for id_ in cast(list[object], found)]
            await acknowledged(self._redis, "DEL", traces_of(tenant), *bodies)
        return len(bodies)

    async def settings(self, tenant: str) -> TraceSettings:
        """Return the switch's state and the number of stored traces."""
        kept = len(await self._ids(traces_of(tenant)))
        return TraceSettings(tenant=tenant, enabled=await self.enabled(tenant), kept=kept, keep_s=self._keep_ms // 1000)

    async def keep(self, trace_id: str, trace: str, *, tenant: str, namespace: Namespace | None) -> bool:
        """Store a trace (JSON), replacing one with its id. Returns False when the tenant's switch is off."""
        user = namespace.user_id if namespace else _NO_USER
        agent, run = (namespace.agent_id or "", namespace.run_id or "") if namespace else ("", "")
        keys = [trace_switch(tenant), traces_of(tenant), trace_body(tenant, trace_id), traces_of_user(tenant, user)]
        now_ms = int(time.time() * 1000)
        args = [trace_id, now_ms, trace, agent, run, self._keep_ms, self._most, user]
        outcome, *over = await self._keep.rows(keys, args)
        if over:
            with redis_errors():
                await self._redis.delete(*(trace_body(tenant, id_) for id_ in over))
        return outcome == "kept"

    async def all(self, tenant: str) -> AsyncGenerator[str]:
        """Yield the tenant's traces as JSON, oldest first."""
        for id_ in await self._ids(traces_of(tenant)):
            with redis_errors():
                raw = await self._redis.hget(trace_body(tenant, id_), "trace")
            if raw is not None:
                yield text(raw)

    async def forget(self, namespace: Namespace) -> int:
        """Delete the traces of the namespace's writes. Returns the number deleted."""
        tenant, of_user = namespace.tenant, traces_of_user(namespace.tenant, namespace.user_id)
        gone = 0
        for id_ in await self._ids(of_user):
            with redis_errors():
                found = await self._redis.hmget(trace_body(tenant, id_), ["agent_id", "run_id"])
            agent, run = ("" if value is None else text(value) for value in found)
            if namespace.agent_id in (None, agent) and namespace.run_id in (None, run):
                gone += await self.forget_one(tenant, id_)
                with redis_errors():
                    await self._redis.zrem(of_user, id_)
        return gone

    async def forget_one(self, tenant: str, trace_id: str) -> int:
        """Delete one trace. Returns the number deleted, 0 or 1."""
        with redis_errors():
            await self._redis.zrem(traces_of(tenant), trace_id)
            return int(await acknowledged(self._redis, "DEL", trace_body(tenant, trace_id)))

    async def _ids(self, index: str) -> list[str]:
        oldest = int(time.time() * 1000) - self._keep_ms
        with redis_errors():
            found: Any = await self._redis.zrangebyscore(index, oldest, "+inf")  # pyright: ignore[reportUnknownMemberType]
        return [text(id_) for id_ in cast(list[object], found)]


def trace_switch(tenant: str) -> str:
    """Name the switch that keeps a tenant's traces. All trace keys of a tenant share the tenant's tag."""
    return f"memloop:traces:{{{tenant}}}:on"


def traces_of(tenant: str) -> str:
    """Name the sorted set of the tenant's traces, by time."""
    return f"memloop:traces:{{{tenant}}}:all"


def traces_of_user(tenant: str, user_id: str) -> str:
    """Name the sorted set of the traces of a user's writes, by time."""
    return f"memloop:traces:{{{tenant}}}:of:{user_id}"


def trace_body(tenant: str, trace_id: str) -> str:
    """Name the hash of a trace."""
    return f"memloop:traces:{{{tenant}}}:trace:{trace_id}"
