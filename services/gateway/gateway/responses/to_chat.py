"""Translates a request of the Responses API to a chat completion's. Whatever the two share is carried as it is.

* Instructions, and system and developer messages at the beginning, become one system message: chat templates of open
  models take only one, and only there.
* Reasoning, a message of the assistant and its function calls, in this order, are one message of the assistant.
* ``allowed_tools`` leaves out the other tools, which is what it means.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import JsonValue

from gateway.responses.items import (
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputFile,
    InputImage,
    InputText,
    Item,
    Message,
    Part,
    Reasoning,
    Refusal,
    checked,
)
from gateway.responses.requests import AllowedTools, Asked, Format, Function, FunctionChoice
from memloop.clients.dialects import EARLIER_THINKING
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest

_OURS: Final = frozenset(
    {
        "input",
        "instructions",
        "previous_response_id",
        "store",
        "tools",
        "tool_choice",
        "max_output_tokens",
        "max_tool_calls",
        "text",
        "reasoning",
        "include",
        "truncation",
        "metadata",
        "stream_options",
        "background",
        "conversation",
    }
)
"""Fields that do not go to the engine under their own names."""
_LEADING: Final = frozenset({"system", "developer"})


def chat_fields(asked: Asked, items: Sequence[Item], *, limit_field: str) -> Json:
    """Return the body of the chat completion that answers the request, of these items.

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
    fields |= _tools(asked) | _response_format(asked.text.format)
    options = {"verbosity": asked.text.verbosity, "reasoning_effort": asked.reasoning.effort}
    return fields | {name: value for name, value in options.items() if value is not None}


def messages_of(items: Sequence[Item], instructions: str | None) -> list[JsonValue]:
    """Return the messages of a chat. Raises InvalidRequest for an output without its call, and for no messages."""
    calls = {item.call_id for item in items if isinstance(item, FunctionCall)}
    for item in items:
        if isinstance(item, FunctionCallOutput) and item.call_id not in calls:
            message = f"No tool call found for function call output with call_id {item.call_id}."
            raise InvalidRequest(message, param="input", code="tool_call_not_found")
    leading = 0
    while leading < len(items) and _leads(items[leading]):
        leading += 1
    messages = [*_system(instructions, items[:leading]), *_conversation(items[leading:])]
    if not messages:
        raise InvalidRequest("The request has no input.", param="input", code="missing_required_parameter")
    return list(messages)


def _leads(item: Item) -> bool:
    """Return whether the item is a system message without anything but text."""
    return isinstance(item, Message) and item.role in _LEADING and all(map(_is_text, _parts(item)))


def _is_text(part: Part) -> bool:
    return part.type in {"input_text", "output_text"}


def _parts(message: Message) -> Sequence[Part]:
    return (
        (InputText(type="input_text", text=message.content),) if isinstance(message.content, str) else message.content
    )


def _system(instructions: str | None, leading: Iterable[Item]) -> list[Json]:
    texts = [] if instructions is None else [instructions]
    for item in leading:
        if isinstance(item, Message):
            texts.extend(_text(part) for part in _parts(item))
    return [{"role": "system", "content": "\n\n".join(texts)}] if texts else []


def _text(part: Part) -> str:
    return part.text if isinstance(part, InputText) or part.type == "output_text" else ""


def _conversation(items: Iterable[Item]) -> list[Json]:
    messages: list[Json] = []
    for item in items:
        match item:
            case Message(role="assistant") | FunctionCall() | Reasoning():
                _say(messages, item)
            case FunctionCallOutput():
                messages.append({"role": "tool", "tool_call_id": item.call_id, "content": _output(item)})
            case Message():
                role = "system" if item.role in _LEADING else item.role
                messages.append({"role": role, "content": _content(item)})
    return [message if _says(message) else {**message, "content": ""} for message in messages]


def _says(message: Json) -> bool:
    return message["content"] is not None or "tool_calls" in message


def _say(messages: list[Json], item: Message | FunctionCall | Reasoning) -> None:
    """Add the item to the assistant's last message, or to a new one if it cannot follow what is there."""
    last = messages[-1] if messages and messages[-1]["role"] == "assistant" else None
    if last is None or not _may_follow(last, item):
        messages.append(last := {"role": "assistant", "content": None})
    match item:
        case Reasoning():
            last[EARLIER_THINKING] = item.text()
        case Message():
            last["content"] = _content(item)
        case FunctionCall():
            calls = last.setdefault("tool_calls", [])
            if isinstance(calls, list):
                calls.append(_call(item))


def _may_follow(message: Json, item: Message | FunctionCall | Reasoning) -> bool:
    if isinstance(item, FunctionCall):
        return True
    return not _says(message) and not (isinstance(item, Reasoning) and EARLIER_THINKING in message)


def _call(item: FunctionCall) -> Json:
    call: Json = {
        "id": item.call_id,
        "type": "function",
        "function": {"name": item.name, "arguments": item.arguments},
    }
    return call if item.extra_content is None else {**call, "extra_content": item.extra_content}


def _output(item: FunctionCallOutput) -> JsonValue:
    if isinstance(item.output, str):
        return item.output
    return [{"type": "text", "text": part.text} for part in item.output]


def _content(message: Message) -> JsonValue:
    """Return a string where a string says it all: many templates take no list."""
    if isinstance(message.content, str):
        return message.content
    parts = [_part(part) for part in message.content]
    only = message.content[0] if len(message.content) == 1 else None
    return _text(only) if only is not None and _is_text(only) else list(parts)


def _part(part: Part) -> Json:
    match part:
        case InputImage():
            return {"type": "image_url", "image_url": {"url": part.image_url, "detail": part.detail}}
        case InputFile():
            return {"type": "file", "file": {"filename": part.filename, "file_data": part.file_data}}
        case InputAudio():
            return {"type": "input_audio", "input_audio": part.input_audio.model_dump()}
        case Refusal():
            return {"type": "refusal", "refusal": part.refusal}
        case _:
            return {"type": "text", "text": part.text}


def _tools(asked: Asked) -> Json:
    tools, choice = _chosen(asked)
    if not tools:
        return {}
    fields: Json = {"tools": [_tool(tool) for tool in tools]}
    return fields if choice is None else {**fields, "tool_choice": choice}


def _chosen(asked: Asked) -> tuple[Sequence[Function], JsonValue]:
    """Return the tools that the model may call, and the choice among them."""
    choice = asked.request.tool_choice
    if choice is None or choice in ("none", "auto", "required"):
        return asked.tools, choice
    kind = choice.get("type") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and kind == "function":
        name = checked(FunctionChoice, choice, "tool_choice").name
        _known([name], asked.tools)
        return asked.tools, {"type": "function", "function": {"name": name}}
    if isinstance(choice, dict) and kind == "allowed_tools":
        allowed = checked(AllowedTools, choice, "tool_choice")
        names = [tool.name for tool in allowed.tools]
        _known(names, asked.tools)
        return [tool for tool in asked.tools if tool.name in names], allowed.mode
    raise InvalidRequest("This tool_choice is not supported.", param="tool_choice", code="unsupported_value")


def _known(names: Sequence[str], tools: Sequence[Function]) -> None:
    if not {tool.name for tool in tools}.issuperset(names):
        message = "tool_choice names a tool that is not in tools."
        raise InvalidRequest(message, param="tool_choice", code="unknown_tool")


def _tool(tool: Function) -> Json:
    given = {"description": tool.description, "parameters": tool.parameters, "strict": tool.strict}
    function: Json = {"name": tool.name, **{name: value for name, value in given.items() if value is not None}}
    return {"type": "function", "function": function}


def _response_format(form: Format) -> Json:
    if form.type == "text":
        return {}
    if form.type == "json_object":
        return {"response_format": {"type": "json_object"}}
    given = {"name": form.name, "schema": form.schema_, "strict": form.strict, "description": form.description}
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {name: value for name, value in given.items() if value is not None},
        }
    }
