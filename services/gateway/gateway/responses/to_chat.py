"""Translates a request of the Responses API to a chat completion's. Whatever the two share is carried as it is.

* Instructions, and system and developer messages at the beginning, become one system message: chat templates of open
  models take only one, and only there.
* A file search is left out: the engine has seen the passages that it found.
* Reasoning, a message of the assistant and its function calls, in this order, are one message of the assistant.
* ``allowed_tools`` leaves out the other tools, which is what it means.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from gateway.responses.calls import (
    CALLS,
    OUTPUTS,
    Call,
    CustomToolCall,
    FunctionCall,
    InputAudio,
    InputFile,
    InputImage,
    InputText,
    LocalShellCall,
    Output,
    Part,
    Refusal,
    ToolSearchCall,
)
from gateway.responses.items import EngineItem, FileSearchCall, Item, ItemReference, Message, Reasoning
from gateway.responses.requests import Asked
from gateway.responses.tools import Offered, chosen
from memloop.wire.chat import EARLIER_THINKING, Json
from memloop.wire.errors import InvalidRequest

_OURS: Final = frozenset((
    "input", "instructions", "previous_response_id", "store", "tools", "tool_choice", "max_output_tokens",
    "max_tool_calls", "text", "reasoning", "include", "truncation", "metadata", "stream_options", "background",
    "conversation", "client_metadata",
))  # fmt: skip
"""Fields that do not go to the engine under their own names."""
_LEADING: Final = frozenset({"system", "developer"})
FROM_OUTPUT: Final = "From the output of the tool call"
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
        if not isinstance(item, Message) or item.role not in _LEADING or not all(map(_is_text, _parts(item))):
            break
        leading += 1
        texts += map(_text, _parts(item))
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


def _is_text(part: Part) -> bool:
    return part.type in {"input_text", "output_text"}


def _parts(message: Message) -> Sequence[Part]:
    return (
        (InputText(type="input_text", text=message.content),) if isinstance(message.content, str) else message.content
    )


def _text(part: Part) -> str:
    return part.text if isinstance(part, InputText) or part.type == "output_text" else ""


def _conversation(items: Iterable[EngineItem]) -> list[Json]:
    messages: list[Json] = []
    others: list[JsonValue] = []
    for item in items:
        if isinstance(item, OUTPUTS):
            parts = () if isinstance(item.output, str) else item.output
            texts: list[JsonValue] = [_part(part) for part in parts if _is_text(part)]
            content = item.output if isinstance(item.output, str) else texts
            messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})
            # A tool's message holds text alone: pictures and files come below a line that names the call
            pictures: list[JsonValue] = [_part(part) for part in parts if not _is_text(part)]
            if pictures:
                others.append({"type": "text", "text": f"{FROM_OUTPUT} {item.call_id}:"})
                others += pictures
            continue
        messages += _after_outputs(others)
        others = []
        if isinstance(item, Message) and item.role != "assistant":
            role = "system" if item.role in _LEADING else item.role
            messages.append({"role": role, "content": _content(item)})
        else:
            _say(messages, item)
    messages += _after_outputs(others)
    return [message if _says(message) else {**message, "content": ""} for message in messages]


def _after_outputs(parts: list[JsonValue]) -> list[Json]:
    """Return the user's message with the pictures of tools: it follows the outputs of all calls of one answer."""
    return [{"role": "user", "content": parts}] if parts else []


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
        case FunctionCall() | CustomToolCall() | LocalShellCall() | ToolSearchCall():
            calls = last.setdefault("tool_calls", [])
            if isinstance(calls, list):
                call: Json = {"id": item.call_id, "type": "function", "function": item.function()}
                calls.append(call if item.extra_content is None else {**call, "extra_content": item.extra_content})


def _content(message: Message) -> JsonValue:
    """Return a plain string where the content is one text: many templates take no list."""
    if isinstance(message.content, str):
        return message.content
    parts = [_part(part) for part in message.content]
    only = message.content[0] if len(message.content) == 1 else None
    return _text(only) if only is not None and _is_text(only) else list(parts)


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
