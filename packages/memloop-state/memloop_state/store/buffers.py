"""Turns that wait for more context, in Redis: one hash per tenant and user, a set of the users of each tenant.

A sorted set over all of them, by the time of their last change, finds those that no longer grow. In a cluster
each part of it has such sets of its own.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from typing import Any

from memloop.wire.errors import TooLarge
from memloop.wire.memory import Buffer, BufferPage, Namespace
from memloop_state.link import State, sent
from memloop_state.steps import Partition, Partitions, Steps, digest
from memloop_state.store.erasures import refuse_stale

_MAX_LISTED = 1000


class Buffers:
    """The buffers of all namespaces. ``max_turns``: a longer buffer is refused, the writer must flush before."""

    def __init__(self, link: State, *, max_turns: int) -> None:
        self._redis: Any = link
        self._parts = Partitions(link)
        self._step = Steps(link, "owners", "gate", "claims")
        self._max_turns = max_turns

    async def put(self, buffer: Buffer, *, token: int | None = None) -> Buffer:
        """Replace the namespace's buffer. Raises ``TooLarge``, and ``Conflict`` on a stale fencing token."""
        if len(buffer.turns) > self._max_turns:
            raise TooLarge(f"a buffer holds at most {self._max_turns} turns", param="turns", code="buffer_too_long")
        moment = datetime.now(UTC)
        stored = buffer.model_copy(update={"updated_at": moment})
        space = buffer.namespace
        await self._changed(space, token, {_field(space): stored.model_dump_json()}, moment.timestamp())
        return stored

    async def page(self, tenant: str, user_id: str | None) -> BufferPage:
        """Return the buffers of a user, or of the tenant's users (at most 1,000), in no order."""
        users = [user_id] if user_id is not None else await self._users(tenant)
        found: list[Buffer] = []
        for user in users:
            values = await sent(self._redis, "HVALS", self._of_user(tenant, user))
            found.extend(Buffer.model_validate_json(value) for value in values)
            if len(found) >= _MAX_LISTED:
                break
        return BufferPage(buffers=tuple(found[:_MAX_LISTED]))

    async def idle(self, before: datetime, *, limit: int) -> BufferPage:
        """Buffers of all tenants that were last changed before that moment, the oldest first."""
        places: list[tuple[float, str, Partition]] = []
        for part in self._parts.partitions:
            asked = (part.key("buffers-by-time"), 0, before.timestamp(), "LIMIT", 0, limit, "WITHSCORES")
            rows = await sent(self._redis, "ZRANGEBYSCORE", *asked, withscores=True)
            places += [(changed, place, part) for place, changed in rows]
        found = [await self._at(part, place) for _, place, part in sorted(places, key=itemgetter(0))[:limit]]
        return BufferPage(buffers=tuple(buffer for buffer in found if buffer is not None))

    async def clear(self, namespace: Namespace, *, token: int | None = None) -> None:
        """Forget exactly this namespace's buffer; those of its user's other agents and runs stay.

        Raises ``Conflict`` on a stale fencing token.
        """
        await self._changed(namespace, token, {_field(namespace): ""})

    async def erase(self, namespace: Namespace) -> int:
        """Forget every buffer that the namespace's set ids match; how many there were."""
        fields = await self._within(namespace)
        # also none: replicas have what an earlier try did
        await self._changed(namespace, None, dict.fromkeys(fields, ""))
        return len(fields)

    async def count(self, namespace: Namespace) -> int:
        """How many buffers an erasure would forget."""
        return len(await self._within(namespace))

    async def _within(self, namespace: Namespace) -> list[str]:
        """The names of the buffers that the namespace's set ids match."""
        stored = await sent(self._redis, "HGETALL", self._of_user(namespace.tenant, namespace.user_id))
        held = {field: Buffer.model_validate_json(value).namespace for field, value in stored.items()}
        return [
            field
            for field, own in held.items()
            if namespace.agent_id in (None, own.agent_id) and namespace.run_id in (None, own.run_id)
        ]

    async def _at(self, part: Partition, place: str) -> Buffer | None:
        """Return the buffer of an entry of the sorted set; an entry that leads nowhere goes."""
        key, _, field = place.partition("/")
        value = await sent(self._redis, "HGET", key, field)
        if value is None:
            await sent(self._redis, "ZREM", part.key("buffers-by-time"), place)
            return None
        return Buffer.model_validate_json(value)

    def _of_user(self, tenant: str, user: str) -> str:
        """Name the hash of a user's buffers. It is in the partition of the user's lane, as the lane's fence is."""
        lane = Namespace(tenant=tenant, user_id=user).lane()
        return self._parts.of_name(lane).hidden("buffers", tenant, user)

    async def _users(self, tenant: str) -> list[str]:
        users: list[str] = []
        for part in self._parts.partitions:
            users += await sent(self._redis, "SRANDMEMBER", part.hidden("buffered-users", tenant), _MAX_LISTED)
        return users[:_MAX_LISTED]

    async def _changed(self, space: Namespace, token: int | None, fields: Mapping[str, str], at: float = 0.0) -> None:
        """Replace some of a user's buffers; an empty one goes. Raises ``Conflict`` on a stale fencing token."""
        part, writer = self._parts.of_name(space.lane()), "" if token is None else token
        user, users = self._of_user(space.tenant, space.user_id), part.hidden("buffered-users", space.tenant)
        keys = [user, users, part.key("buffers-by-time"), part.hidden("lane-fence", space.lane())]
        args = [space.user_id, writer, at, *chain.from_iterable(fields.items())]
        refuse_stale(token, await self._step("set_buffers", keys, ["", *args], acknowledged=True))


def _field(namespace: Namespace) -> str:
    return digest(*("" if part is None else f"={part}" for part in (namespace.agent_id, namespace.run_id)))
