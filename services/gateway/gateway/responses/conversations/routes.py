"""``/v1/conversations``: conversations and their items, as OpenAI's API has them."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import APIRouter, Depends, Query
from pydantic import Field, JsonValue

from gateway.access import Asking, Room, namespace_named, needs
from gateway.chat import ChatDep
from gateway.responses.conversations.records import Conversation, ConversationsDep
from gateway.responses.items import UnreadItem, items_of, named_items, redacted
from gateway.responses.requests import INCLUDES
from memloop.wire.base import Wire
from memloop.wire.chat import Json, Metadata
from memloop.wire.lists import Deleted, ListPage
from memloop.wire.memory import Scope
from memloop_service import ERRORS
from memloop_service.http import body_of, json_text

_PATH: Final = "/v1/conversations"
_MOST_AT_ONCE: Final = 20
"""How many items one request may add, as in the public API."""

router = APIRouter(
    prefix=_PATH, tags=["conversations"], dependencies=[needs("chat", ignores_unknown=True)], responses=ERRORS
)


class ConversationCreate(Wire):
    """The beginning of a conversation. ``metadata.user_id`` names the user whose erasure deletes it."""

    items: list[UnreadItem] | None = Field(default=None, max_length=_MOST_AT_ONCE)
    metadata: Metadata | None = None


class ConversationUpdate(Wire):
    """New metadata, in the place of the old."""

    metadata: Metadata | None


class ItemsCreate(Wire):
    """Items for the end of a conversation."""

    items: list[UnreadItem] = Field(min_length=1, max_length=_MOST_AT_ONCE)


class ConversationDeleted(Deleted):
    """The answer to a deletion."""

    object: Literal["conversation.deleted"] = "conversation.deleted"


class ItemPage(ListPage[Json]):
    """Items of a conversation, or of a response's input."""


@dataclass(frozen=True, slots=True)
class Conversing(Asking):
    """A request about conversations."""

    conversations: ConversationsDep
    chat: ChatDep

    async def items(self, given: list[JsonValue], scope: Scope) -> list[Json]:
        """Return the items that a client adds, named and redacted. Raises InvalidRequest, Unprocessable."""
        items = named_items(items_of(given, "items"), secrets.token_hex(16))
        json_text({"items": [*items]})  # what can be read may be nested too deeply to be written
        return await redacted(items, self.chat.memory.keeper, scope)

    def scope(self, metadata: Metadata) -> Scope:
        """Return the user whom metadata and headers name, else the caller's tenant."""
        return namespace_named(self.principal, metadata, self.request.headers) or Scope(tenant=self.tenant)


ConversingDep: TypeAlias = Annotated[Conversing, Depends()]


@dataclass(frozen=True, slots=True)
class ItemPaging:
    """The query of a list of items."""

    after: Annotated[str | None, Query(max_length=256)] = None
    limit: Annotated[int, Query(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"

    @property
    def newest_first(self) -> bool:
        return self.order == "desc"


PagingDep: TypeAlias = Annotated[ItemPaging, Depends()]


@router.post("", dependencies=[Room], openapi_extra=body_of(ConversationCreate))
async def create_conversation(asking: ConversingDep) -> Conversation:
    """Begin a conversation with at most 20 items."""
    asked = await asking.body(ConversationCreate)
    metadata = asked.metadata or {}
    scope = asking.scope(metadata)
    items = await asking.items(asked.items or [], scope)
    [shown] = await redacted([{**metadata}], asking.chat.memory.keeper, scope)
    return await asking.conversations.create(scope, shown, items)


@router.get("/{conversation_id}")
async def get_conversation(conversation_id: str, asking: ConversingDep) -> Conversation:
    """Return a conversation without its items."""
    return await asking.conversations.get(asking.tenant, conversation_id)


@router.post("/{conversation_id}", dependencies=[Room], openapi_extra=body_of(ConversationUpdate))
async def update_conversation(conversation_id: str, asking: ConversingDep) -> Conversation:
    """Replace a conversation's metadata. The user whose erasure deletes it stays."""
    asked, scope = await asking.body(ConversationUpdate), Scope(tenant=asking.tenant)
    [shown] = await redacted([{**(asked.metadata or {})}], asking.chat.memory.keeper, scope)
    return await asking.conversations.update(asking.tenant, conversation_id, shown)


@router.delete("/{conversation_id}")
async def delete_conversation(conversation_id: str, asking: ConversingDep) -> ConversationDeleted:
    """Delete a conversation with its items. Stored responses that continued it stay."""
    await asking.conversations.delete(asking.tenant, conversation_id)
    return ConversationDeleted(id=conversation_id)


@router.post("/{conversation_id}/items", dependencies=[Room, INCLUDES], openapi_extra=body_of(ItemsCreate))
async def create_conversation_items(conversation_id: str, asking: ConversingDep) -> ItemPage:
    """Add at most 20 items at the end of a conversation."""
    asked, scope = await asking.body(ItemsCreate), asking.scope({})
    items = await asking.items(asked.items, scope)
    await asking.conversations.add(conversation_id, scope, items)
    return item_page(items, has_more=False)


@router.get("/{conversation_id}/items", dependencies=[INCLUDES])
async def list_conversation_items(conversation_id: str, asking: ConversingDep, paging: PagingDep) -> ItemPage:
    """List the items of a conversation."""
    items, has_more = await asking.conversations.items(
        asking.tenant, conversation_id, after=paging.after, limit=paging.limit, newest_first=paging.newest_first
    )
    return item_page(items, has_more=has_more)


@router.get("/{conversation_id}/items/{item_id}", dependencies=[INCLUDES])
async def get_conversation_item(conversation_id: str, item_id: str, asking: ConversingDep) -> Json:
    """Return one item of a conversation."""
    return await asking.conversations.item(asking.tenant, conversation_id, item_id)


@router.delete("/{conversation_id}/items/{item_id}")
async def delete_conversation_item(conversation_id: str, item_id: str, asking: ConversingDep) -> Conversation:
    """Delete one item of a conversation."""
    return await asking.conversations.delete_item(asking.tenant, conversation_id, item_id)


def item_page(items: Sequence[Json], *, has_more: bool) -> ItemPage:
    """Return a page of items, each with its id."""
    return ItemPage.of(items, [str(item["id"]) for item in items], has_more=has_more)
