"""What the store keeps of each tenant beside memories, in Redis: turns that wait for more context, and the changes.

Buffers are one hash per tenant and user, with a set of the users of each tenant. A sorted set over all of them, by the
time of their last change, finds those that no longer grow. In a cluster each part of it has such sets of its own.

Changes are bounded in number and time, in the order in which they happened. The vectors are in another system, so a
write notes its changes before they are stored and publishes them afterwards. What a store that died has noted is
published by another one: a change may appear twice, and never not at all
(docs/decisions/0080-changes-are-published-by-the-store.md).
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from pydantic import TypeAdapter

from memloop.wire.changes import LATEST, OLDEST, Change, ChangePage, MemoryChange, Newest, StoreChanges
from memloop.wire.errors import Gone, TooLarge
from memloop.wire.memory import Buffer, BufferPage, Namespace, Scope
from memloop_state.link import State, all_sent, sent
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
        users = [user_id] if user_id is not None else list[str]()
        for part in self._parts.partitions if user_id is None else ():
            users += await sent(self._redis, "SRANDMEMBER", part.hidden("buffered-users", tenant), _MAX_LISTED)
        found: list[Buffer] = []
        for user in users[:_MAX_LISTED]:
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

    async def _changed(self, space: Namespace, token: int | None, fields: Mapping[str, str], at: float = 0.0) -> None:
        """Replace some of a user's buffers; an empty one goes. Raises ``Conflict`` on a stale fencing token."""
        part, writer = self._parts.of_name(space.lane()), "" if token is None else token
        user, users = self._of_user(space.tenant, space.user_id), part.hidden("buffered-users", space.tenant)
        keys = [user, users, part.key("buffers-by-time"), part.hidden("lane-fence", space.lane())]
        args = [space.user_id, writer, at, *chain.from_iterable(fields.items())]
        refuse_stale(token, await self._step("set_buffers", keys, ["", *args], acknowledged=True))


def _field(namespace: Namespace) -> str:
    return digest(*("" if part is None else f"={part}" for part in (namespace.agent_id, namespace.run_id)))


_OVER_MS: Final = 30_000
"""Longer than a write is on its way into the vector store."""
_CHANGES: Final = TypeAdapter(dict[str, tuple[Change, ...]])


class ChangeFeed:
    """The feeds of all tenants. Every method raises ``Unavailable`` when Redis is unreachable.

    ``most`` entries of a tenant are kept, each for ``keep_s`` seconds at the longest.
    """

    def __init__(self, link: State, *, most: int, keep_s: float, over_ms: int = _OVER_MS) -> None:
        self._link = link
        self._keys = Partitions(link)
        self._limits = [most, int(keep_s * 1000)]
        self._over_ms = over_ms
        self._step = Steps(link, "feed")

    async def note(self, changes: Mapping[str, Sequence[Change]]) -> str:
        """Note changes by tenant that are about to be stored; returns the note's name, empty without changes."""
        if not changes:
            return ""
        name = uuid.uuid4().hex
        for tenant, some in changes.items():
            noted = _CHANGES.dump_json({tenant: tuple(some)}, exclude_none=True).decode()
            unsure = self._keys.of_name(tenant).key("changes-unsure")
            await self._step("note", [unsure], [name, noted], acknowledged=True)
        return name

    async def publish(self, changes: Mapping[str, Sequence[Change]], *, note: str = "") -> None:
        """Append changes by tenant, and remove their note."""
        for tenant, some in changes.items():
            part = self._keys.of_name(tenant)
            keys = [part.hidden("changes", tenant), part.hidden("changes-state", tenant), part.key("changes-unsure")]
            texts = [change.model_dump_json(exclude_none=True) for change in some]
            await self._step("publish", keys, [note, *self._limits, *texts], acknowledged=True)

    async def page(self, asked: StoreChanges) -> ChangePage:
        """Return the changes after the cursor that lie in the scope. Raises ``Gone`` when some of them were cut off."""
        tenant = asked.scope.tenant
        part = self._keys.of_name(tenant)
        args = [asked.after, asked.limit, *self._limits]
        state, *rest = await self._step.rows(
            "read", [part.hidden("changes", tenant), part.hidden("changes-state", tenant)], args
        )
        if state == "old":
            raise Gone(
                "Changes after this cursor are no longer kept: read the memories again, then go on after 'latest'.",
                param="after",
                code="cursor_too_old",
            )
        last, *entries = rest
        found = [
            MemoryChange(id=id_, **Change.model_validate_json(text).model_dump())
            for id_, text in zip(entries[::2], entries[1::2], strict=True)
        ]
        cursor = found[-1].id if found else last if asked.after in (LATEST, OLDEST) else asked.after
        changes = tuple(change for change in found if _lies_in(change, asked.scope))
        return ChangePage(changes=changes, cursor=cursor, has_more=len(found) == asked.limit and cursor != last)

    async def newest(self, tenants: Sequence[str]) -> Newest:
        """Return the place of each tenant's newest change."""
        states = [self._keys.of_name(tenant).hidden("changes-state", tenant) for tenant in tenants]
        found = await all_sent(self._link, [("HGET", state, "last") for state in states])
        return Newest(cursors={tenant: last or OLDEST for tenant, last in zip(tenants, found, strict=True)})

    async def publish_noted(self) -> int:
        """Publish the noted changes of writes that ended without doing so; returns the number of those writes."""
        done = 0
        for part in self._keys.partitions:
            flat = await self._step.rows("stale", [part.key("changes-unsure")], [self._over_ms])
            for name, noted in zip(flat[::2], flat[1::2], strict=True):
                await self.publish(_CHANGES.validate_json(noted), note=name)
                done += 1
        return done


def _lies_in(change: Change, scope: Scope) -> bool:
    """Whether the change is about memories of the scope; an erasure may reach further than the scope."""
    erased = change.type == "memory.erased"
    pairs = ((scope.user_id, change.user_id), (scope.agent_id, change.agent_id), (scope.run_id, change.run_id))
    return all(asked is None or asked == own or (erased and own is None) for asked, own in pairs)
