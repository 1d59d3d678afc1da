"""Keeps conversations in Redis: their items in order, their metadata, and the users who have a part in them.

A tenant's conversations share a tag with the count of their bytes. They expire ``keep_s`` after they were made or last
added to. An erasure deletes every conversation in which the user has a part: it was made for the user, or holds items
of a response for the user.
"""

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import orjson
from redis.asyncio import Redis

from gateway.responses.conversations import scripts
from gateway.responses.key_names import Keys
from gateway.responses.records import Owner
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, NotFound, RateLimited
from memloop_state.link import redis_errors
from memloop_state.owners import owned_args, owned_keys
from memloop_state.partitions import id_at
from memloop_state.room import RedisRoom
from memloop_state.scripts import Script, text

Added: TypeAlias = Literal["added", "erased", "gone", "many", "full", "long", "duplicate"]
KIND: Final = "conversations"
"""What conversations are among the records of their owners."""
_ID: Final = re.compile(r"conv_[0-9a-f]{32}")
_RETRY_AFTER_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one tenant may keep: conversations, their bytes in all; and one conversation: items, bytes."""

    keep_s: float
    tenant_bytes: int
    conversations: int
    items: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Began:
    """A conversation that a response began to continue, and the user's erasures until then."""

    id: str
    erasures: str


class ConversationRecords:
    """Every tenant's conversations. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, room: RedisRoom, limits: Limits) -> None:
        self._redis = redis
        self._room_in_redis = room
        self._keys = Keys(redis)
        self._limits = limits
        self._add = Script(redis, scripts.ADD, acknowledged=True)
        self._page = Script(redis, scripts.PAGE)
        self._room = Script(redis, scripts.ROOM)
        self._update = Script(redis, scripts.UPDATE, acknowledged=True)
        self._delete_item = Script(redis, scripts.DELETE_ITEM, acknowledged=True)
        self._delete = Script(redis, scripts.DELETE, acknowledged=True)

    async def create(self, conversation_id: str, owner: Owner, metadata: Json, items: Sequence[Json]) -> Json:
        """Make a conversation and return it. Raises RateLimited over the tenant's quota, InvalidRequest."""
        await self._room_in_redis.check()
        created_at = str(int(time.time()))
        _refuse(await self._added(conversation_id, owner, items, created_at=created_at, metadata=metadata))
        return _shown(conversation_id, created_at, metadata)

    async def add(self, conversation_id: str, owner: Owner, items: Sequence[Json]) -> None:
        """Add items at the end. Raises NotFound, and as ``create`` does."""
        await self._room_in_redis.check()
        _refuse(await self._added(_checked(conversation_id), owner, items))

    async def append(self, began: Began, owner: Owner, items: Sequence[Json]) -> Added:
        """Add the input and the output of a response that began then. Returns why it could not."""
        return await self._added(began.id, owner, items, erasures=began.erasures)

    async def get(self, tenant: str, conversation_id: str) -> Json:
        """Return the conversation. Raises NotFound."""
        key = self._keys.of_name(tenant).conversation(tenant, _checked(conversation_id))
        with redis_errors():
            created_at, metadata = await self._redis.hmget(key, ["created_at", "metadata"])
        if created_at is None:
            raise _missing()
        return _shown(conversation_id, text(created_at), orjson.loads(text(metadata)))

    async def context(self, tenant: str, conversation_id: str) -> list[Json]:
        """Return all items, for a response that continues the conversation. Raises NotFound."""
        try:
            items, _ = await self.items(
                tenant, conversation_id, after=None, limit=self._limits.items, newest_first=False
            )
        except NotFound:
            raise _missing("conversation") from None
        return items

    async def begin(self, owner: Owner, conversation_id: str, *, new: int, size: int) -> Began:
        """Check that a response may add ``new`` items of ``size`` bytes and its answer.

        Raises NotFound, RateLimited and InvalidRequest when there is no room.
        """
        await self._room_in_redis.check()
        rows = await self._room.rows(self._keys_of(owner, conversation_id), [conversation_id, *owner.scopes])
        exists, held, own, items = map(int, rows[:4])
        if not exists:
            raise _missing("conversation")
        if held + size > self._limits.tenant_bytes:
            _refuse("full")
        if own + size > self._limits.bytes or items + new >= self._limits.items:
            _refuse("long")
        return Began(conversation_id, rows[4])

    async def items(
        self, tenant: str, conversation_id: str, *, after: str | None, limit: int, newest_first: bool
    ) -> tuple[list[Json], bool]:
        """Return items after that one, and whether there are more. Raises NotFound."""
        keys = self._keys_of(Owner(tenant, None), _checked(conversation_id))
        kind, *found = await self._page.rows(keys, [after or "", limit, int(newest_first)])
        if kind == "gone":
            raise _missing()
        if kind == "after":
            raise NotFound("Item not found.", param="after")
        return [orjson.loads(item) for item in found[1:]], found[0] == "true"

    async def item(self, tenant: str, conversation_id: str, item_id: str) -> Json:
        """Return one item. Raises NotFound."""
        await self.get(tenant, conversation_id)
        key = self._keys.of_name(tenant).conversation_items(tenant, conversation_id)
        with redis_errors():
            found = await self._redis.hget(key, item_id)
        if found is None:
            raise NotFound("Item not found.", param="item_id")
        return cast(Json, orjson.loads(text(found)))

    async def update(self, tenant: str, conversation_id: str, metadata: Json) -> Json:
        """Replace the metadata. Raises NotFound, RateLimited over the tenant's quota."""
        keys = self._keys_of(Owner(tenant, None), _checked(conversation_id))
        args = [conversation_id, orjson.dumps(metadata).decode(), self._limits.tenant_bytes]
        if (outcome := cast(Added | Literal["updated"], await self._update(keys, args))) != "updated":
            _refuse(outcome)
        return await self.get(tenant, conversation_id)

    async def delete_item(self, tenant: str, conversation_id: str, item_id: str) -> Json:
        """Delete an item; return the conversation. Raises NotFound."""
        found = await self.get(tenant, conversation_id)
        keys = self._keys_of(Owner(tenant, None), conversation_id)
        if not await self._delete_item.number(keys, [conversation_id, item_id]):
            raise NotFound("Item not found.", param="item_id")
        return found

    async def delete(self, tenant: str, conversation_id: str) -> None:
        """Delete the conversation with its items. Raises NotFound."""
        if not await self._deleted(tenant, _checked(conversation_id)):
            raise _missing()

    async def _added(
        self,
        conversation_id: str,
        owner: Owner,
        items: Sequence[Json],
        *,
        erasures: str = "",
        created_at: str = "",
        metadata: Json | None = None,
    ) -> Added:
        limits = self._limits
        args: list[str | int] = [
            conversation_id,
            int(limits.keep_s * 1000),
            limits.tenant_bytes,
            limits.conversations,
            limits.bytes,
            limits.items,
            erasures,
            created_at,
            orjson.dumps(metadata or {}).decode(),
            len(owner.scopes),
            *owner.scopes,
            *owned_args(owner.noted, kind=KIND, record_id=conversation_id),
        ]
        owned = owned_keys(self._keys.of_name(owner.tenant), owner.noted)
        pairs = [part for item in items for part in (str(item["id"]), orjson.dumps(item).decode())]
        return cast(Added, await self._add([*self._keys_of(owner, conversation_id), *owned], [*args, *pairs]))

    async def _deleted(self, tenant: str, conversation_id: str) -> int:
        keys = self._keys_of(Owner(tenant, None), conversation_id)
        return await self._delete.number(keys, [conversation_id])

    def _keys_of(self, owner: Owner, conversation_id: str) -> list[str]:
        tenant, part = owner.tenant, self._keys.of_name(owner.tenant)
        return [
            part.erased(owner.lane),
            part.conversations_of(tenant),
            part.conversation_sizes(tenant),
            part.conversation(tenant, conversation_id),
            part.conversation_order(tenant, conversation_id),
            part.conversation_items(tenant, conversation_id),
        ]


def new_conversation_id(tenant: str) -> str:
    """Return a new id of 120 random bits at the tenant's place."""
    return id_at("conv_", tenant, secrets.token_hex(16))


def _shown(conversation_id: str, created_at: str, metadata: Json) -> Json:
    return {"id": conversation_id, "object": "conversation", "created_at": int(created_at), "metadata": metadata}


def _checked(conversation_id: str) -> str:
    if not _ID.fullmatch(conversation_id):
        raise _missing()
    return conversation_id


def _missing(param: str = "conversation_id") -> NotFound:
    return NotFound("Conversation not found.", param=param, code="conversation_not_found")


def _refuse(outcome: Added) -> None:
    """Raise the error of items that were not added."""
    match outcome:
        case "gone" | "erased":
            raise _missing()
        case "many" | "full":
            message = "This tenant's conversations are as many, or as long in all, as they may be. Delete some."
            raise RateLimited(message, code="conversation_quota_exceeded", retry_after_s=_RETRY_AFTER_S)
        case "long":
            raise InvalidRequest("The conversation would have too many items or bytes.", code="conversation_too_long")
        case "duplicate":
            raise InvalidRequest("The conversation already has an item of this id.", code="duplicate_item")
        case "added":
            pass
