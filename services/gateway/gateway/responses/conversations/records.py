"""Keeps conversations: their items in order, their metadata, and the users who have a part in them.

They expire ``keep_s`` after they were made or last added to. An erasure deletes every conversation in which the user
has a part: it was made for the user, or holds items of a response for the user.
"""

import re
import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias, cast

import orjson

from gateway.responses.records import owners_of
from gateway.settings import GatewaySettings
from memloop.wire.base import Wire
from memloop.wire.chat import Json, Metadata
from memloop.wire.errors import InvalidRequest, NotFound, RateLimited
from memloop.wire.memory import Scope
from memloop_service import of_app
from memloop_state.link import State
from memloop_state.owners import FROM_NOW
from memloop_state.room import Room
from memloop_state.steps import id_at
from memloop_state.table import Outcome, Row, Table

KIND: Final = "conversations"
"""What conversations are among the records of their owners."""
_ID: Final = re.compile(r"conv_[0-9a-f]{32}")
_RETRY_AFTER_S: Final = 60.0
_BYTES_BESIDE: Final = 1024
"""What a conversation takes in memory beside its metadata and items."""
_BYTES_OF_OWNER: Final = 256


class Conversation(Wire):
    """A conversation without its items. ``created_at`` is in seconds since the epoch."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: Metadata


class ConversationRecords:
    """Every tenant's conversations. Methods raise Unavailable."""

    def __init__(self, state: State, settings: GatewaySettings) -> None:
        self._table = Table(
            state,
            "conversation",
            kind=KIND,
            keep_s=settings.response_keep_s,
            most=settings.tenant_conversations,
            most_bytes=settings.tenant_conversation_bytes,
            record_bytes=settings.max_json_bytes,
            most_rows=settings.conversation_items,
            owner_bytes=_BYTES_OF_OWNER,
        )
        self._room = Room(state, share=settings.redis_full_share)
        self._limits = settings

    async def create(self, scope: Scope, metadata: Json, items: Sequence[Json]) -> Conversation:
        """Make a conversation of a user or a tenant. Raises RateLimited over the tenant's quota, InvalidRequest."""
        await self._room.check()
        conversation_id = id_at("conv_", scope.tenant, secrets.token_hex(16))
        created_at, kept = str(int(time.time())), orjson.dumps(metadata)
        outcome = await self._table.put(
            scope.tenant,
            conversation_id,
            {"created_at": created_at, "metadata": kept},
            size=_BYTES_BESIDE + len(kept),
            rows=_rows(items),
            owners=owners_of(scope, FROM_NOW),
        )
        _refuse(outcome)
        return _shown(conversation_id, created_at, metadata)

    async def add(self, conversation_id: str, scope: Scope, items: Sequence[Json]) -> None:
        """Add items at the end. Raises NotFound, and as ``create`` does."""
        await self._room.check()
        _refuse(await self.append(_checked(conversation_id), scope, FROM_NOW, items))

    async def append(self, conversation_id: str, scope: Scope, began: int, items: Sequence[Json]) -> Outcome:
        """Add the input and the output of a response that ``began`` with that token; return kept, or why not."""
        owners, rows = owners_of(scope, began), _rows(items)
        return await self._table.put(scope.tenant, conversation_id, {}, rows=rows, owners=owners, known=True)

    async def get(self, tenant: str, conversation_id: str) -> Conversation:
        """Return the conversation. Raises NotFound."""
        found = await self._table.get(tenant, _checked(conversation_id))
        if found is None:
            raise _missing()
        return _shown(conversation_id, found["created_at"], orjson.loads(found["metadata"]))

    async def begin(self, tenant: str, conversation_id: str, *, new: int, size: int) -> None:
        """Check that a response may add ``new`` items of ``size`` bytes and its answer.

        Raises NotFound, RateLimited and InvalidRequest when there is no room.
        """
        await self._room.check()
        now = await self._table.standing(tenant, conversation_id)
        if not now.exists:
            raise _missing("conversation")
        if now.tenant_bytes + size > self._limits.tenant_conversation_bytes:
            _refuse("full")
        if now.record_bytes + size > self._limits.max_json_bytes or now.rows + new >= self._limits.conversation_items:
            _refuse("long")

    async def items(
        self,
        tenant: str,
        conversation_id: str,
        *,
        limit: int,
        after: str | None = None,
        newest_first: bool = False,
        param: str = "conversation_id",
    ) -> tuple[list[Json], bool]:
        """Return items after that one, and whether there are more. Raises NotFound by ``param``, or ``after``."""
        where = _checked(conversation_id, param)
        outcome, rows, more = await self._table.rows(
            tenant, where, limit=limit, after=after or "", newest_first=newest_first
        )
        if outcome == "gone":
            raise _missing(param)
        if outcome == "after":
            raise NotFound("Item not found.", param="after")
        return [orjson.loads(row.text) for row in rows], more

    async def item(self, tenant: str, conversation_id: str, item_id: str) -> Json:
        """Return one item. Raises NotFound."""
        await self.get(tenant, conversation_id)
        row = await self._table.row(tenant, conversation_id, item_id)
        if row is None:
            raise NotFound("Item not found.", param="item_id")
        return cast(Json, orjson.loads(row.text))

    async def update(self, tenant: str, conversation_id: str, metadata: Json) -> Conversation:
        """Replace the metadata. Raises NotFound, RateLimited over the tenant's quota."""
        fields = {"metadata": orjson.dumps(metadata)}
        outcome = await self._table.change(tenant, _checked(conversation_id), fields, counted=True)
        if outcome != "changed":
            _refuse(outcome)
        return await self.get(tenant, conversation_id)

    async def delete_item(self, tenant: str, conversation_id: str, item_id: str) -> Conversation:
        """Delete an item; return the conversation. Raises NotFound."""
        found = await self.get(tenant, conversation_id)
        if await self._table.delete_row(tenant, conversation_id, item_id) == "gone":
            raise NotFound("Item not found.", param="item_id")
        return found

    async def delete(self, tenant: str, conversation_id: str) -> None:
        """Delete the conversation with its items. Raises NotFound."""
        if await self._table.delete(tenant, _checked(conversation_id)) == "gone":
            raise _missing()


def _rows(items: Sequence[Json]) -> list[Row]:
    texts = [(str(item["id"]), orjson.dumps(item)) for item in items]
    return [Row(item_id, text.decode(), len(item_id.encode()) + len(text)) for item_id, text in texts]


def _shown(conversation_id: str, created_at: str, metadata: Json) -> Conversation:
    return Conversation.model_validate({"id": conversation_id, "created_at": int(created_at), "metadata": metadata})


def _checked(conversation_id: str, param: str = "conversation_id") -> str:
    if not _ID.fullmatch(conversation_id):
        raise _missing(param)
    return conversation_id


def _missing(param: str = "conversation_id") -> NotFound:
    return NotFound("Conversation not found.", param=param, code="conversation_not_found")


def _refuse(outcome: Outcome) -> None:
    """Raise the error of items that were not added."""
    match outcome:
        case "gone" | "erased":
            raise _missing()
        case "many" | "full":
            message = "This tenant's conversations are as many, or as long in all, as they may be. Delete some."
            raise RateLimited(message, code="conversation_quota_exceeded", retry_after_s=_RETRY_AFTER_S)
        case "long" | "rows":
            raise InvalidRequest("The conversation would have too many items or bytes.", code="conversation_too_long")
        case "duplicate":
            raise InvalidRequest("The conversation already has an item of this id.", code="duplicate_item")
        case _:
            pass


ConversationsDep: TypeAlias = Annotated[ConversationRecords, of_app("conversations")]
