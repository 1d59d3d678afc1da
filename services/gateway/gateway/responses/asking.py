"""The chat that answers a response's request, and where the response is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.chat import Chat
from gateway.responses.items import items_of
from gateway.responses.keeping import Continued, Keeping
from gateway.responses.naming import named_items
from gateway.responses.reading import read_of
from gateway.responses.records import Owner
from gateway.responses.requests import Asked
from gateway.responses.responses import Responses
from gateway.responses.to_chat import chat_fields
from gateway.responses.tools import Offered, offered_tools
from memloop.wire.chat import ChatRequest, Json
from memloop.wire.errors import InvalidRequest
from memloop_service.http import json_text, objects_in


@dataclass(frozen=True, slots=True)
class Question:
    """A chat: its body, the fields of it that the gateway reads, and the functions that the engine gets."""

    body: Json
    read: ChatRequest
    tools: Mapping[str, Offered]


def question_of(asked: Asked, earlier: Sequence[Json], chat: Chat) -> Question:
    """Return the chat that answers the request after these items. Raises InvalidRequest, Unprocessable, NotFound."""
    items = [*items_of([*earlier]), *asked.items]
    tools = offered_tools(asked.tools, items)
    dialect = chat.backend.models.named(asked.request.model).dialect
    body = chat_fields(asked, items, tools, limit_field=dialect.limit_field)
    return Question(body, read_of(asked, body), tools)


async def earlier_items(asked: Asked, responses: Responses, tenant: str) -> list[Json]:
    """Return the items that the request continues: of a conversation, or of a chain of responses. Raises NotFound."""
    previous, conversation = asked.request.previous_response_id, asked.request.conversation_id
    if conversation is not None:
        return await responses.conversations.context(tenant, conversation)
    if previous is None:
        return []
    chain = await responses.records.chain(tenant, previous, max_bytes=responses.max_context_bytes)
    return [item for link in chain for item in (*link.input, *objects_in(link.response["output"]))]


async def keeping_of(
    asked: Asked,
    responses: Responses,
    owner: Owner,
    response_id: str,
    *,
    earlier: Sequence[Json],
    size: int,
    chat: Chat,
) -> Keeping | None:
    """Return where the response of ``size`` bytes and more is kept, None for nowhere.

    Raises RateLimited, InvalidRequest and NotFound when there is no room for it, Unavailable.
    """
    request = asked.request
    if not request.stores and request.conversation_id is None:
        return None
    items = named_items(asked.items, response_id.removeprefix("resp_"))
    _refuse_known_ids(items, earlier, conversation=request.conversation_id)
    size += len(json_text(items))
    return Keeping(
        records=responses.records,
        owner=owner,
        began=await responses.records.begin(owner, size=size) if request.stores else None,
        input=items,
        previous=request.previous_response_id or "",
        lost=responses.lost,
        keeper=chat.memory.keeper,
        conversation=await _continued(asked, responses, owner, new=len(items), size=size),
    )


async def _continued(asked: Asked, responses: Responses, owner: Owner, *, new: int, size: int) -> Continued | None:
    conversation = asked.request.conversation_id
    if conversation is None:
        return None
    records = responses.conversations
    return Continued(records, await records.begin(owner, conversation, new=new, size=size))


def _refuse_known_ids(items: Sequence[Json], earlier: Sequence[Json], *, conversation: str | None) -> None:
    ids = [item["id"] for item in (*earlier, *items)] if conversation is not None else []
    if len(set(map(str, ids))) < len(ids):
        raise InvalidRequest("The conversation already has an item of this id.", param="input", code="duplicate_item")
