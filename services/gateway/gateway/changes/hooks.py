"""Stores each tenant's subscriptions to changes, and how far each of them was served, in Redis."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from redis.asyncio import Redis

from gateway.webhooks.deliveries import memory_hooks_of
from memloop.wire.base import Wire
from memloop.wire.changes import Change, ChangeType
from memloop.wire.errors import Conflict, NotFound
from memloop_state.link import redis_errors
from memloop_state.scripts import Script, text

MOST_HOOKS: Final = 20
MEMORY_HOOK_TENANTS: Final = "memloop:{memory-webhooks}:tenants"
MEMORY_HOOK_PLACES: Final = "memloop:{memory-webhooks}:places"
MEMORY_HOOK_LOCK: Final = "memloop:{memory-webhooks}:lock"

_PUT: Final = """
-- KEYS: the tenant's hooks, all tenants, places; ARGV: tenant, hook's id, hook, most, place
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[5])
return 1
"""
_DELETE: Final = """
-- KEYS: as above; ARGV: tenant, hook's id
local found = redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[3], ARGV[2])
if redis.call('HLEN', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[1]) end
return found
"""
_MOVE: Final = """
-- KEYS: places; ARGV: hook's id, place. A hook that was deleted meanwhile gets none
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
"""


class Hook(Wire):
    """A subscription: the changes of these types, of one user or of all, go to ``url``."""

    id: str
    tenant: str
    url: str
    events: tuple[ChangeType, ...]
    user_id: str | None = None
    created_at: datetime

    def wants(self, change: Change) -> bool:
        """Return whether the change is subscribed to."""
        return change.type in self.events and self.user_id in (None, change.user_id)


class MemoryHooks:
    """The subscriptions in one Redis. Methods raise Unavailable when it is unreachable."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._put = Script(redis, _PUT, acknowledged=True)
        self._delete = Script(redis, _DELETE, acknowledged=True)
        self._move = Script(redis, _MOVE)

    async def add(self, hook: Hook, *, place: str) -> None:
        """Store a subscription from that place on. Raises Conflict when the tenant has too many."""
        args = [hook.tenant, hook.id, hook.model_dump_json(exclude_none=True), MOST_HOOKS, place]
        if not await self._put.number(_keys(hook.tenant), args):
            raise Conflict(f"A tenant may have {MOST_HOOKS} memory webhooks.", code="too_many_webhooks")

    async def delete(self, tenant: str, hook_id: str) -> None:
        """Delete a subscription. Raises NotFound."""
        if not await self._delete.number(_keys(tenant), [tenant, hook_id]):
            raise NotFound(f"Webhook {hook_id!r} not found.", param="hook_id")

    async def of(self, tenant: str) -> Sequence[Hook]:
        """Return the tenant's subscriptions, oldest first."""
        with redis_errors():
            found = await self._redis.hvals(memory_hooks_of(tenant))
        hooks = [Hook.model_validate_json(text(raw)) for raw in cast("list[object]", found)]
        return sorted(hooks, key=lambda hook: (hook.created_at, hook.id))

    async def tenants(self) -> Sequence[str]:
        """Return the tenants with subscriptions."""
        with redis_errors():
            return sorted(text(one) for one in await self._redis.smembers(MEMORY_HOOK_TENANTS))

    async def places(self, hooks: Sequence[Hook]) -> Mapping[str, str]:
        """Return how far each subscription was served."""
        if not hooks:
            return {}
        with redis_errors():
            found = await self._redis.hmget(MEMORY_HOOK_PLACES, [hook.id for hook in hooks])
        pairs = zip(hooks, cast("list[object]", found), strict=True)
        return {hook.id: text(raw) for hook, raw in pairs if raw is not None}

    async def served(self, hook: Hook, place: str) -> None:
        """Note how far a subscription was served."""
        await self._move([MEMORY_HOOK_PLACES], [hook.id, place])


def new_hook_id() -> str:
    """Return a new id of 128 random bits."""
    return f"hook_{secrets.token_hex(16)}"


def _keys(tenant: str) -> list[str]:
    return [memory_hooks_of(tenant), MEMORY_HOOK_TENANTS, MEMORY_HOOK_PLACES]
