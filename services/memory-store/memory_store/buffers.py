"""Turns that wait for more context, in Redis: one hash per tenant and user, one set of users per tenant.

A sorted set over all of them, by the time of their last change, finds those that nobody adds to any more.
"""

from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from typing import Protocol, cast

from memloop.wire.errors import TooLarge
from memloop.wire.memory import Buffer, BufferPage, Namespace
from memory_store.redis_link import RedisLink, digest, translated

_MAX_LISTED = 1000
_BY_TIME = "memloop:buffers-by-time"


class _Texts(Protocol):
    """The commands that are used, as they behave with decoded responses."""

    def hvals(self, name: str) -> Awaitable[list[str]]: ...
    def hgetall(self, name: str) -> Awaitable[dict[str, str]]: ...
    def sscan_iter(self, name: str) -> AsyncIterator[str]: ...
    def hget(self, name: str, key: str) -> Awaitable[str | None]: ...
    def zrem(self, name: str, *values: str) -> Awaitable[int]: ...
    def zrangebyscore(self, name: str, min: float, max: float, start: int, num: int) -> Awaitable[list[str]]: ...  # noqa: A002 - redis names them so


_DROP = """
local dropped = redis.call('HDEL', KEYS[1], unpack(ARGV, 2))
for _, field in ipairs({unpack(ARGV, 2)}) do redis.call('ZREM', KEYS[3], KEYS[1] .. '/' .. field) end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[1]) end
return dropped
"""


class Buffers:
    """The buffers of all namespaces. ``max_turns``: a longer buffer is refused, the writer must flush before."""

    def __init__(self, link: RedisLink, *, max_turns: int) -> None:
        self._link = link
        self._texts = cast("_Texts", cast("object", link))
        self._drop_script = link.register_script(_DROP)
        self._max_turns = max_turns

    async def put(self, buffer: Buffer) -> Buffer:
        """Replace the namespace's buffer. Raises ``TooLarge``."""
        if len(buffer.turns) > self._max_turns:
            raise TooLarge(f"a buffer holds at most {self._max_turns} turns", param="turns", code="buffer_too_long")
        moment = datetime.now(UTC)
        stored = buffer.model_copy(update={"updated_at": moment})
        space = buffer.namespace
        key, field = _user_key(space.tenant, space.user_id), _field(space)
        with translated():
            async with self._link.pipeline(transaction=True) as pipe:
                pipe.hset(key, field, stored.model_dump_json())
                pipe.sadd(_users_key(space.tenant), space.user_id)
                pipe.zadd(_BY_TIME, {f"{key}/{field}": moment.timestamp()})
                await pipe.execute()
        return stored

    async def page(self, tenant: str, user_id: str | None) -> BufferPage:
        """The buffers of a user, or of the tenant's users (at most 1,000), in no order."""
        users = [user_id] if user_id is not None else await self._users(tenant)
        found: list[Buffer] = []
        for user in users:
            with translated():
                values = await self._texts.hvals(_user_key(tenant, user))
            found.extend(Buffer.model_validate_json(value) for value in values)
            if len(found) >= _MAX_LISTED:
                break
        return BufferPage(buffers=tuple(found[:_MAX_LISTED]))

    async def idle(self, before: datetime, *, limit: int) -> BufferPage:
        """Buffers of all tenants that were last changed before that moment, the oldest first."""
        with translated():
            places = await self._texts.zrangebyscore(_BY_TIME, 0, before.timestamp(), 0, limit)
            found = [await self._at(place) for place in places]
        return BufferPage(buffers=tuple(buffer for buffer in found if buffer is not None))

    async def clear(self, namespace: Namespace) -> None:
        """Forget exactly this namespace's buffer; those of its user's other agents and runs stay."""
        await self._drop(namespace, [_field(namespace)])

    async def erase(self, namespace: Namespace) -> int:
        """Forget every buffer that the namespace's set ids match; how many there were."""
        with translated():
            stored = await self._texts.hgetall(_user_key(namespace.tenant, namespace.user_id))
        fields = [field for field, value in stored.items() if _matches(namespace, Buffer.model_validate_json(value))]
        return await self._drop(namespace, fields) if fields else 0

    async def ping(self) -> None:
        """Raise ``Unavailable`` when Redis does not answer."""
        with translated():
            await self._link.ping()  # pyright: ignore[reportUnknownMemberType]

    async def _at(self, place: str) -> Buffer | None:
        """The buffer of an entry of the sorted set; an entry that leads nowhere goes."""
        key, _, field = place.partition("/")
        value = await self._texts.hget(key, field)
        if value is None:
            await self._texts.zrem(_BY_TIME, place)
            return None
        return Buffer.model_validate_json(value)

    async def _users(self, tenant: str) -> list[str]:
        users: list[str] = []
        with translated():
            async for user in self._texts.sscan_iter(_users_key(tenant)):
                users.append(user)
                if len(users) >= _MAX_LISTED:
                    break
        return users

    async def _drop(self, namespace: Namespace, fields: list[str]) -> int:
        with translated():
            dropped = await self._drop_script(
                keys=[_user_key(namespace.tenant, namespace.user_id), _users_key(namespace.tenant), _BY_TIME],
                args=[namespace.user_id, *fields],
            )
        return int(dropped)


def _user_key(tenant: str, user_id: str) -> str:
    return f"memloop:buffers:{digest(tenant, user_id)}"


def _users_key(tenant: str) -> str:
    return f"memloop:buffered-users:{digest(tenant)}"


def _field(namespace: Namespace) -> str:
    return digest(*("" if part is None else f"={part}" for part in (namespace.agent_id, namespace.run_id)))


def _matches(namespace: Namespace, buffer: Buffer) -> bool:
    held = buffer.namespace
    agent_fits = namespace.agent_id is None or namespace.agent_id == held.agent_id
    return agent_fits and (namespace.run_id is None or namespace.run_id == held.run_id)
