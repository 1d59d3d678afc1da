"""Translates a request of the Responses API, with the items that it continues, to the chat that answers it.

Whatever the two APIs share is carried as it is.

* Instructions, and system and developer messages at the beginning, become one system message: chat templates of open
  models take only one, and only there.
* A file search is left out: the engine has seen the passages that it found.
* Reasoning, a message of the assistant and its function calls, in this order, are one message of the assistant.
* ``allowed_tools`` leaves out the other tools, which is what it means.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from gateway.chat import FROM_TOOL, Chat, translated_chat
from gateway.responses.calls import (
    CALLS,
    LOCAL_SHELL,
    OUTPUTS,
    TOOL_SEARCH,
    Call,
    CustomToolCall,
    FunctionCall,
    InputAudio,
    InputFile,
    InputImage,
    InputText,
    LocalShellCall,
    Output,
    OutputText,
    Part,
    Refusal,
    ToolSearchCall,
    flat_name,
)
from gateway.responses.items import EngineItem, FileSearchCall, Item, ItemReference, Message, Reasoning, items_of
from gateway.responses.keeping import Responses
from gateway.responses.requests import Asked
from gateway.responses.tools import Offered, chosen, offered_tools
from memloop.wire.chat import EARLIER_THINKING, ChatRequest, Json
from memloop.wire.errors import InvalidRequest, NotFound
from memloop_service.http import json_text, object_in, objects_in

_OURS: Final = frozenset((
    "input", "instructions", "previous_response_id", "store", "tools", "tool_choice", "max_output_tokens",
    "max_tool_calls", "text", "reasoning", "include", "truncation", "metadata", "stream_options", "background",
    "conversation", "client_metadata",
))  # fmt: skip
"""Fields that do not go to the engine under their own names."""
_INSTALLATION: Final = "x-codex-installation-id"
_LEADING: Final = frozenset({"system", "developer"})
_LARGEST: Final = "high"
"""The largest size of a picture that a chat can ask for."""


def chat_fields(asked: Asked, items: Sequence[Item], offered: Mapping[str, Offered], *, limit_field: str) -> Json:
    """Return the body of the chat completion that answers the request, of these items and functions.

    ``limit_field`` is the engine's name for the limit of the answer. Raises InvalidRequest.
    """
    request = asked.request
    fields: Json = {name: value for name, value in asked.fields.items() if name not in _OURS and value is not None}
    fields["messages"] = list(messages_of(items, request.instructions))
    if request.stream:
        fields["stream_options"] = {"include_usage": True}
    if request.max_output_tokens is not None:
        fields[limit_field] = request.max_output_tokens
    if request.wants_logprobs:
        fields["logprobs"] = True
    tools, choice = chosen(request.tool_choice, offered)
    if tools:
        fields["tools"] = [{"type": "function", "function": tool.function} for tool in tools]
        fields |= {} if choice is None else {"tool_choice": choice}
    form = asked.text.format
    if form.type == "json_object":
        fields["response_format"] = {"type": "json_object"}
    elif form.type == "json_schema":
        schema = form.model_dump(exclude={"type"}, exclude_none=True, by_alias=True)
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    options = {"verbosity": asked.text.verbosity, "reasoning_effort": asked.reasoning.effort}
    return fields | {name: value for name, value in options.items() if value is not None}


def messages_of(items: Sequence[Item], instructions: str | None) -> list[JsonValue]:
    """Return the messages of a chat. Raises InvalidRequest for an output without its call, and for no messages."""
    calls = {item.call_id for item in items if isinstance(item, CALLS)}
    for item in items:
        if isinstance(item, OUTPUTS) and item.call_id not in calls:
            message = f"No tool call found for function call output with call_id {item.call_id}."
            raise InvalidRequest(message, param="input", code="tool_call_not_found")
    sent = _with_outputs_behind_calls([item for item in items if not isinstance(item, FileSearchCall | ItemReference)])
    leading, texts = 0, [] if instructions is None else [instructions]
    for item in sent:
        if not isinstance(item, Message) or item.role not in _LEADING:
            break
        own = [part.text for part in item.parts if isinstance(part, InputText | OutputText)]
        if len(own) < len(item.parts):
            break
        leading += 1
        texts += own
    system: list[Json] = [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
    messages = [*system, *_conversation(sent[leading:])]
    if not messages:
        raise InvalidRequest("The request has no input.", param="input", code="missing_required_parameter")
    return list(messages)


def _with_outputs_behind_calls(items: Sequence[EngineItem]) -> list[EngineItem]:
    """Return the items with each output behind the calls of its answer, where engines demand it; repeated ones once."""
    groups: list[tuple[list[EngineItem], dict[str, Output]]] = []
    group_of: dict[str, dict[str, Output]] = {}
    waiting: dict[str, Output] = {}
    for item in items:
        if isinstance(item, OUTPUTS):
            group_of.get(item.call_id, waiting)[item.call_id] = item
        elif not isinstance(item, CALLS):
            groups.append(([item], {}))
        elif item.call_id not in group_of:
            if not groups or groups[-1][1] or not isinstance(groups[-1][0][-1], CALLS):
                groups.append(([], {}))
            groups[-1][0].append(item)
            group_of[item.call_id] = groups[-1][1]
            if item.call_id in waiting:
                groups[-1][1][item.call_id] = waiting.pop(item.call_id)
    return [item for calls, outputs in groups for item in (*calls, *outputs.values())]


def _conversation(items: Iterable[EngineItem]) -> list[Json]:
    messages: list[Json] = []
    others: list[JsonValue] = []
    for item in items:
        if isinstance(item, OUTPUTS):
            parts = () if isinstance(item.output, str) else item.output
            texts: list[JsonValue] = [_part(part) for part in parts if isinstance(part, InputText)]
            content = item.output if isinstance(item.output, str) else texts
            messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})
            # A tool's message holds text alone: pictures and files come below a line that names the call
            pictures: list[JsonValue] = [_part(part) for part in parts if not isinstance(part, InputText)]
            if pictures:
                others.append({"type": "text", "text": f"{FROM_TOOL} {item.call_id}:"})
                others += pictures
            continue
        if others:  # behind the outputs of all calls of one answer
            messages.append({"role": "user", "content": others})
            others = []
        if isinstance(item, Message) and item.role != "assistant":
            role = "system" if item.role in _LEADING else item.role
            messages.append({"role": role, "content": _content(item)})
        else:
            _say(messages, item)
    if others:
        messages.append({"role": "user", "content": others})
    return [message if _says(message) else {**message, "content": ""} for message in messages]


def _says(message: Json) -> bool:
    return message["content"] is not None or "tool_calls" in message


def _say(messages: list[Json], item: Message | Call | Reasoning) -> None:
    """Add the item to the assistant's last message, or to a new message if it cannot follow that one."""
    last = messages[-1] if messages and messages[-1]["role"] == "assistant" else None
    goes_on = isinstance(item, CALLS) or (
        last is not None and not _says(last) and not (isinstance(item, Reasoning) and EARLIER_THINKING in last)
    )
    if last is None or not goes_on:
        messages.append(last := {"role": "assistant", "content": None})
    match item:
        case Reasoning():
            last[EARLIER_THINKING] = item.text()
        case Message():
            last["content"] = _content(item)
        case _:
            calls = last.setdefault("tool_calls", [])
            if isinstance(calls, list):
                call: Json = {"id": item.call_id, "type": "function", "function": _function(item)}
                calls.append(call if item.extra_content is None else {**call, "extra_content": item.extra_content})


def _function(call: Call) -> Json:
    """Return a call as a chat has it: of a function, whose arguments are JSON."""
    match call:
        case FunctionCall():
            return {"name": flat_name(call.name, call.namespace), "arguments": call.arguments}
        case CustomToolCall():
            name, arguments = flat_name(call.name, call.namespace), {"input": call.input}
        case LocalShellCall():
            action = call.action.model_dump(mode="json", exclude={"type"}, exclude_defaults=True)
            name, arguments = LOCAL_SHELL, action
        case ToolSearchCall():
            name, arguments = TOOL_SEARCH, call.arguments
    return {"name": name, "arguments": json_text(arguments).decode()}


def _content(message: Message) -> JsonValue:
    """Return a plain string where the content is one text: many templates take no list."""
    match message.parts:
        case [InputText(text=text) | OutputText(text=text)]:
            return text
        case parts:
            return [_part(part) for part in parts]


def _part(part: Part) -> Json:
    match part:
        case InputImage():
            detail = _LARGEST if part.detail == "original" else part.detail
            return {"type": "image_url", "image_url": {"url": part.image_url, "detail": detail}}
        case InputFile():
            return {"type": "file", "file": {"filename": part.filename, "file_data": part.file_data}}
        case InputAudio():
            return {"type": "input_audio", "input_audio": part.input_audio.model_dump()}
        case Refusal():
            return {"type": "refusal", "refusal": part.refusal}
        case _:
            return {"type": "text", "text": part.text}


_PLACE: Final = 4
"""So many characters at the end of an item's id are its place in the response."""
_OF_INPUT: Final = "i"


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
    body = chat_fields(asked, items, tools, limit_field=chat.limit_field(asked.request.model))
    request = asked.request
    # Codex names its installation in every request, and no user
    given = object_in((request.model_extra or {}).get("client_metadata")).get(_INSTALLATION)
    installation = f"codex_{given}" if isinstance(given, str) and given else None
    read = translated_chat(
        objects_in(body["messages"]),
        request.memory,
        model=request.model,
        stream=request.stream,
        metadata=request.metadata,
        safety_identifier=request.safety_identifier,
        user=installation if request.user is None else request.user,
    )
    return Question(body, read, tools)


async def asked_after(
    asked: Asked, responses: Responses, tenant: str, chat: Chat
) -> tuple[Asked, list[Json], Question]:
    """Return the request with the items that it names, the items that it continues, and the chat that answers it.

    Raises NotFound for the conversation or the model, InvalidRequest for the chain or an id of no item, Unprocessable.
    """
    previous, conversation = asked.request.previous_response_id, asked.request.conversation_id
    earlier: list[Json] = []
    if conversation is not None:
        most = responses.settings.conversation_items
        earlier, _ = await responses.conversations.items(tenant, conversation, limit=most, param="conversation")
    elif previous is not None:
        chain = await responses.records.chain(tenant, previous, max_bytes=responses.settings.max_json_bytes)
        earlier = [item for link in chain for item in (*link.input, *objects_in(link.response["output"]))]
    asked = await _with_references(asked, earlier, responses, tenant)
    return asked, earlier, question_of(asked, earlier, chat)


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
