"""Traces in Redis: a switch for each tenant, and what was kept while it was on.

All keys of a tenant carry its name as their hash tag, so that the scripts work on a cluster too. A trace dies by age,
by the tenant's cap (the oldest first), with the namespace or the read that it is of, and with the switch.
"""

import time
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

from redis.asyncio import Redis

from gateway.lua import Script, redis_errors, text
from memloop.wire.memory import Namespace
from memloop.wire.traces import TraceSettings

_NOBODY: Final = ""

_KEEP = """
-- KEYS: switch, index, body, the user's index; ARGV: id, ms, trace, agent, run, keep ms, cap, body prefix, user or ''
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[3], 'trace', ARGV[3], 'agent_id', ARGV[4], 'run_id', ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if ARGV[9] ~= '' then
  redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[4], ARGV[6])
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2] - ARGV[6])) do
  redis.call('ZREM', KEYS[2], id)
end
local over = redis.call('ZCARD', KEYS[2]) - ARGV[7]
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, over - 1)) do
    redis.call('DEL', ARGV[8] .. id)
    redis.call('ZREM', KEYS[2], id)
  end
end
return 1
"""

_FORGET_ALL = """
-- KEYS: switch, index; ARGV: body prefix
redis.call('DEL', KEYS[1])
local ids = redis.call('ZRANGE', KEYS[2], 0, -1)
for _, id in ipairs(ids) do redis.call('DEL', ARGV[1] .. id) end
redis.call('DEL', KEYS[2])
return #ids
"""


class TraceRecords:
    """Every tenant's traces. Methods raise Unavailable and Timeout when Redis is gone."""

    def __init__(self, redis: Redis, *, keep_s: float, most: int) -> None:
        self._redis = redis
        self._keep_ms = int(keep_s * 1000)
        self._most = most
        self._keep = Script(redis, _KEEP)
        self._forget_all = Script(redis, _FORGET_ALL)

    async def enabled(self, tenant: str) -> bool:
        """Whether the tenant's traces are to be kept."""
        with redis_errors():
            return bool(await self._redis.exists(_switch(tenant)))

    async def enable(self, tenant: str) -> None:
        """Keep traces from now on."""
        with redis_errors():
            await self._redis.set(_switch(tenant), "1")

    async def disable(self, tenant: str) -> int:
        """Keep none any more, and delete those that are kept; how many."""
        return await self._forget_all.number([_switch(tenant), _index(tenant)], [_body(tenant, "")])

    async def settings(self, tenant: str) -> TraceSettings:
        """The switch as it stands, and how many traces are kept."""
        kept = len(await self._ids(_index(tenant)))
        return TraceSettings(tenant=tenant, enabled=await self.enabled(tenant), kept=kept, keep_s=self._keep_ms // 1000)

    async def keep(self, trace_id: str, trace: str, *, tenant: str, namespace: Namespace | None) -> bool:
        """Keep a trace (JSON) in the place of one with its id; False when the tenant's switch is off by now."""
        user = namespace.user_id if namespace else _NOBODY
        agent, run = (namespace.agent_id or "", namespace.run_id or "") if namespace else ("", "")
        keys = [_switch(tenant), _index(tenant), _body(tenant, trace_id), _of_user(tenant, user)]
        now_ms = int(time.time() * 1000)
        args = [trace_id, now_ms, trace, agent, run, self._keep_ms, self._most, _body(tenant, ""), user]
        return await self._keep.number(keys, args) == 1

    async def all(self, tenant: str) -> AsyncGenerator[str]:
        """The tenant's traces, oldest first, each as JSON."""
        for id_ in await self._ids(_index(tenant)):
            with redis_errors():
                raw = await self._redis.hget(_body(tenant, id_), "trace")
            if raw is not None:
                yield text(raw)

    async def forget(self, namespace: Namespace) -> int:
        """Delete the traces of the namespace's writes; how many."""
        tenant, of_user = namespace.tenant, _of_user(namespace.tenant, namespace.user_id)
        gone = 0
        for id_ in await self._ids(of_user):
            with redis_errors():
                found = await self._redis.hmget(_body(tenant, id_), ["agent_id", "run_id"])
            agent, run = ("" if value is None else text(value) for value in found)
            if namespace.agent_id in (None, agent) and namespace.run_id in (None, run):
                gone += await self.forget_one(tenant, id_)
                with redis_errors():
                    await self._redis.zrem(of_user, id_)
        return gone

    async def forget_one(self, tenant: str, trace_id: str) -> int:
        """Delete one trace, if it is there; how many."""
        with redis_errors():
            await self._redis.zrem(_index(tenant), trace_id)
            return int(await self._redis.delete(_body(tenant, trace_id)))

    async def _ids(self, index: str) -> list[str]:
        oldest = int(time.time() * 1000) - self._keep_ms
        with redis_errors():
            found: Any = await self._redis.zrangebyscore(index, oldest, "+inf")  # pyright: ignore[reportUnknownMemberType]
        return [text(id_) for id_ in cast(list[object], found)]


def _switch(tenant: str) -> str:
    return f"memloop:traces:{{{tenant}}}:on"


def _index(tenant: str) -> str:
    return f"memloop:traces:{{{tenant}}}:all"


def _of_user(tenant: str, user_id: str) -> str:
    return f"memloop:traces:{{{tenant}}}:of:{user_id}"


def _body(tenant: str, trace_id: str) -> str:
    return f"memloop:traces:{{{tenant}}}:trace:{trace_id}"
