"""Traces in Redis: a switch for each tenant, and what was kept while it was on.

All keys of a tenant carry its name as their hash tag, so that the scripts work on a cluster too. A trace dies by age,
by the tenant's cap (the oldest first), with the namespace or the read that it is of, and with the switch.
"""

import time
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

from redis.asyncio import Redis

from gateway.redis import Script, text, trace_body, trace_switch, traces_of, traces_of_user
from memloop.wire.memory import Namespace
from memloop.wire.traces import TraceSettings
from memloop_service.redis_link import redis_errors

_NOBODY: Final = ""

_KEEP = """
-- KEYS: switch, index, body, the user's index; ARGV: id, ms, trace, agent, run, keep ms, cap, user or ''
-- 'off', or 'kept' and the ids that are over the cap: their bodies are the caller's to delete
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
local told, over = {'kept'}, redis.call('ZCARD', KEYS[2]) - ARGV[7]
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, over - 1)) do
    redis.call('ZREM', KEYS[2], id)
    table.insert(told, id)
  end
end
return told
"""


class TraceRecords:
    """Every tenant's traces. Methods raise Unavailable when Redis is gone."""

    def __init__(self, redis: Redis, *, keep_s: float, most: int) -> None:
        self._redis = redis
        self._keep_ms = int(keep_s * 1000)
        self._most = most
        self._keep = Script(redis, _KEEP)

    async def enabled(self, tenant: str) -> bool:
        """Whether the tenant's traces are to be kept."""
        with redis_errors():
            return bool(await self._redis.exists(trace_switch(tenant)))

    async def enable(self, tenant: str) -> None:
        """Keep traces from now on."""
        with redis_errors():
            await self._redis.set(trace_switch(tenant), "1")

    async def disable(self, tenant: str) -> int:
        """Keep none any more, and delete those that are kept; how many."""
        with redis_errors():
            await self._redis.delete(trace_switch(tenant))  # first: from now on none is added
            found: Any = await self._redis.zrange(traces_of(tenant), 0, -1)  # pyright: ignore[reportUnknownMemberType]
            bodies = [trace_body(tenant, text(id_)) for id_ in cast(list[object], found)]
            await self._redis.delete(traces_of(tenant), *bodies)
        return len(bodies)

    async def settings(self, tenant: str) -> TraceSettings:
        """The switch as it stands, and how many traces are kept."""
        kept = len(await self._ids(traces_of(tenant)))
        return TraceSettings(tenant=tenant, enabled=await self.enabled(tenant), kept=kept, keep_s=self._keep_ms // 1000)

    async def keep(self, trace_id: str, trace: str, *, tenant: str, namespace: Namespace | None) -> bool:
        """Keep a trace (JSON) in the place of one with its id; False when the tenant's switch is off by now."""
        user = namespace.user_id if namespace else _NOBODY
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
        """The tenant's traces, oldest first, each as JSON."""
        for id_ in await self._ids(traces_of(tenant)):
            with redis_errors():
                raw = await self._redis.hget(trace_body(tenant, id_), "trace")
            if raw is not None:
                yield text(raw)

    async def forget(self, namespace: Namespace) -> int:
        """Delete the traces of the namespace's writes; how many."""
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
        """Delete one trace, if it is there; how many."""
        with redis_errors():
            await self._redis.zrem(traces_of(tenant), trace_id)
            return int(await self._redis.delete(trace_body(tenant, trace_id)))

    async def _ids(self, index: str) -> list[str]:
        oldest = int(time.time() * 1000) - self._keep_ms
        with redis_errors():
            found: Any = await self._redis.zrangebyscore(index, oldest, "+inf")  # pyright: ignore[reportUnknownMemberType]
        return [text(id_) for id_ in cast(list[object], found)]
