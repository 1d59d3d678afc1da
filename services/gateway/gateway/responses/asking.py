"""Translates a response's request, with the items that it continues, to the chat that answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.responses.items import items_of
from gateway.responses.reading import read_of
from gateway.responses.requests import Asked
from gateway.responses.responses import Responses
from gateway.responses.to_chat import chat_fields
from gateway.responses.tools import Offered, offered_tools
from memloop.wire.chat import ChatRequest, Json
from memloop_service.http import objects_in


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


async def earlier_items(asked: Asked, responses: Responses, tenant: str) -> list[Json]:
    """Return the items that the request continues: of a conversation, or of a chain of responses.

    Raises NotFound for the conversation, InvalidRequest for the chain.
    """
    previous, conversation = asked.request.previous_response_id, asked.request.conversation_id
    if conversation is not None:
        return await responses.conversations.context(tenant, conversation)
    if previous is None:
        return []
    chain = await responses.records.chain(tenant, previous, max_bytes=responses.max_context_bytes)
    return [item for link in chain for item in (*link.input, *objects_in(link.response["output"]))]
