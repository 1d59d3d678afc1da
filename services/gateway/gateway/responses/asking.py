"""Translates a response's request, with the items that it continues, to the chat that answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.chat import of_user
from gateway.responses.items import Item, ItemReference, items_of
from gateway.responses.requests import Asked
from gateway.responses.responses import Responses
from gateway.responses.to_chat import FROM_OUTPUT, chat_fields
from gateway.responses.tools import Offered, offered_tools
from memloop.wire.chat import NO_OPTIONS, ChatRequest, Json, is_of_agent
from memloop.wire.errors import InvalidRequest, NotFound
from memloop_service.http import object_in, objects_in

_INSTALLATION: Final = "x-codex-installation-id"


def read_of(asked: Asked, body: Json) -> ChatRequest:
    """Return what the gateway reads of the chat."""
    request, messages = asked.request, objects_in(body["messages"])
    reads = (request.memory or NO_OPTIONS).long_context == "auto"
    # Codex names its installation in every request, and no user
    given = object_in((request.model_extra or {}).get("client_metadata")).get(_INSTALLATION)
    installation = f"codex_{given}" if isinstance(given, str) and given else None
    return ChatRequest.model_validate(
        {
            "model": request.model,
            "messages": [message if reads else _heard(message) for message in messages],
            "stream": request.stream,
            "metadata": request.metadata,
            "memory": request.memory,
            "safety_identifier": request.safety_identifier,
            "user": installation if request.user is None else request.user,
        }
    )


def _heard(message: Json) -> Json:
    """Return the message as memory reads it: one that an agent wrote is not the user's."""
    if message.get("role") != "user":
        return message
    content = message["content"]
    texts = [content] if isinstance(content, str) else [part.get("text") for part in objects_in(content)]
    given = [text for text in texts if isinstance(text, str)]
    own = [text for text in given if not is_of_agent(text) and not text.startswith(FROM_OUTPUT)]
    return of_user(message, given, own)


_PLACE: Final = 4
"""So many characters at the end of an item's id are its place in the response."""
_OF_INPUT: Final = "i"


@dataclass(frozen=True, slots=True)
class Question:
    """A chat: its body, the fields of it that the gateway reads, and the functions that the engine gets."""

    body: Json
    read: ChatRequest
    tools: Mapping[str, Offered]


def question_of(asked: Asked, earlier: Sequence[Json], *, limit_field: str) -> Question:
    """Return the chat that answers the request after these items. Raises InvalidRequest, Unprocessable.

    ``limit_field`` is the one in which the model's engine takes the most tokens of an answer.
    """
    items = [*items_of([*earlier]), *asked.items]
    tools = offered_tools(asked.tools, items)
    body = chat_fields(asked, items, tools, limit_field=limit_field)
    return Question(body, read_of(asked, body), tools)


async def asked_after(
    asked: Asked, responses: Responses, tenant: str, *, limit_field: str
) -> tuple[Asked, list[Json], Question]:
    """Return the request with the items that it names, the items that it continues, and the chat that answers it.

    Raises NotFound for the conversation, InvalidRequest for the chain and for an id of no stored item, Unprocessable.
    """
    previous, conversation = asked.request.previous_response_id, asked.request.conversation_id
    earlier: list[Json] = []
    if conversation is not None:
        earlier = await responses.conversations.context(tenant, conversation)
    elif previous is not None:
        chain = await responses.records.chain(tenant, previous, max_bytes=responses.settings.max_json_bytes)
        earlier = [item for link in chain for item in (*link.input, *objects_in(link.response["output"]))]
    asked = await _with_references(asked, earlier, responses, tenant)
    return asked, earlier, question_of(asked, earlier, limit_field=limit_field)


async def _with_references(asked: Asked, earlier: Sequence[Json], responses: Responses, tenant: str) -> Asked:
    """Return the request with the items that it names by their ids; those among the earlier ones count once.

    Raises InvalidRequest for an id of no stored item.
    """
    if not any(isinstance(item, ItemReference) for item in asked.items):
        return asked
    known, items = {str(item.get("id")) for item in earlier}, list[Item]()
    for place, item in enumerate(asked.items):
        if not isinstance(item, ItemReference):
            items.append(item)
        elif item.id not in known:
            items += items_of([await _stored_item(item.id, f"input[{place}].id", responses, tenant)])
    return replace(asked, items=tuple(items))


async def _stored_item(item_id: str, param: str, responses: Responses, tenant: str) -> Json:
    """Return an item of a stored response, whose id is in the item's own (``Draft.item_id``, ``named_items``)."""
    rest = item_id.partition("_")[2]
    response_id = f"resp_{rest[:-_PLACE].removesuffix(_OF_INPUT)}"
    try:
        stored = await responses.records.get(tenant, response_id)
    except NotFound:
        found = None
    else:
        items = (*objects_in(stored.response.get("output")), *stored.input)
        found = next((item for item in items if item.get("id") == item_id), None)
    if found is None:
        message = f"Item with id '{item_id}' not found. Items are kept with their response: store must not be false."
        raise InvalidRequest(message, param=param, code="item_not_found")
    return found
