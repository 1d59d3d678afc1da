"""Translates a request to a chat: the fields for the engine, its messages, and the user and words for memory.

Everything that a chat can hold is carried; the rest is refused with a 400 that names it. docs/how-to/anthropic.md lists
what becomes of each block and field.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Never, TypeVar

import orjson
from pydantic import JsonValue

from gateway.chat import FROM_TOOL, translated_chat
from gateway.messages.blocks import (
    AssistantMessage,
    Base64Source,
    BlocksSource,
    DocumentParam,
    ImageParam,
    RedactedThinkingParam,
    SearchResultParam,
    SystemMessage,
    TextParam,
    TextSource,
    ThinkingParam,
    ToolResultParam,
    ToolUseParam,
    UrlSource,
    UserMessage,
    hidden_thought,
)
from gateway.messages.requests import AnthropicTool, AnyTool, CountTokens, CreateMessage
from memloop.wire.chat import EARLIER_THINKING, ChatRequest, Json
from memloop.wire.errors import InvalidRequest
from memloop_clients import Dialect
from memloop_service.http import JsonBody, json_text, validated

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CLAUDE_CODE: Final = re.compile(
    f"user_(?P<device_id>[0-9a-f]{{64}})_account_(?P<account_uuid>(?:{_UUID})?)_session_{_UUID}"
)
"""The form before version 2.1.78; later it is a JSON object as a string."""
_JSON_FIELDS: Final = frozenset({"device_id", "account_uuid", "session_id"})


def user_of(user_id: str) -> str:
    """Return the id of the user, the same in every session."""
    fields: Mapping[str, object] = {}
    if (found := _CLAUDE_CODE.fullmatch(user_id)) is not None:
        fields = found.groupdict()
    elif user_id.startswith("{"):
        with suppress(orjson.JSONDecodeError):
            parsed: dict[str, object] = orjson.loads(user_id)
            is_ours = parsed.keys() == _JSON_FIELDS and all(isinstance(value, str) for value in parsed.values())
            fields = parsed if is_ours else {}
    if account := fields.get("account_uuid"):
        return f"account_{account}"
    return f"device_{device}" if (device := fields.get("device_id")) else user_id


_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_LONGEST_USER: Final = 64
"""The longest ``user`` that OpenAI's own endpoint takes."""
_NO_EDIT: Final = "clear_thinking_20251015"


@dataclass(frozen=True, slots=True)
class TranslatedChat:
    """A chat. ``places`` holds the index of the client's own message for each of the chat's; -1 for the system's."""

    body: JsonBody
    fields: ChatRequest
    places: tuple[int, ...]


def translated(asked: CreateMessage, dialect: Dialect) -> TranslatedChat:
    """Translate a request, in its engine's dialect. Raises InvalidRequest (400) for fields that no chat can hold."""
    if asked.messages[-1].role == "assistant":
        refuse("messages", "the last message is the assistant's, and chat completions cannot continue it (prefill).")
    places, messages = _messages(asked)
    fields = _fields(asked, messages) | _generation(asked, dialect)
    user_id = asked.metadata.user_id if asked.metadata is not None else None
    user = user_of(user_id) if user_id else None  # so that it comes after the header X-Memory-User-Id
    read = translated_chat(messages, asked.memory, model=asked.model, stream=asked.stream, user=user)
    return TranslatedChat(JsonBody(json_text(fields), fields), read, places)


def prompt_of(asked: CountTokens) -> tuple[ChatRequest, Json]:
    """Translate a prompt alone, to count its tokens. Raises as ``translated`` does."""
    fields = _fields(asked, _messages(asked)[1])
    return validated(ChatRequest, fields), fields


def _messages(asked: CountTokens) -> tuple[tuple[int, ...], list[Json]]:
    """Return the chat's messages, behind the index of the client's own message for each of them."""
    system = _system(asked.system)
    found: list[tuple[int, Json]] = [(-1, {"role": "system", "content": system})] if system else []
    for place, message in enumerate(asked.messages):
        match message:
            case UserMessage():
                found += [(place, one) for one in _of_user(message, f"messages.{place}")]
            case AssistantMessage():
                found.append((place, _of_assistant(message, f"messages.{place}")))
            case SystemMessage():
                found.append((place, {"role": "system", "content": _system(message.content)}))
    return tuple(place for place, _ in found), [one for _, one in found]


def _fields(asked: CountTokens, messages: list[Json]) -> Json:
    """Return the fields of the prompt."""
    for place, edit in enumerate(asked.context_management.edits if asked.context_management is not None else ()):
        if edit.type != _NO_EDIT or edit.keep != "all":  # keeping all thinking edits nothing
            refuse(f"context_management.edits.{place}", "the gateway does not edit the context; send what is needed.")
    fields: Json = {"model": asked.model, "messages": [*messages]}
    if asked.tools:
        fields["tools"] = [_tool(tool, f"tools.{place}") for place, tool in enumerate(asked.tools)]
    if (choice := asked.tool_choice) is not None:
        if choice.type == "tool" and not choice.name:
            refuse("tool_choice.name", "name the tool.")
        named: Json = {"type": "function", "function": {"name": choice.name}}
        fields["tool_choice"] = named if choice.type == "tool" else _CHOICES[choice.type]
        if choice.disable_parallel_tool_use is not None:
            fields["parallel_tool_calls"] = not choice.disable_parallel_tool_use
    wanted = asked.output_config.format if asked.output_config is not None else None
    if wanted is not None:
        schema: Json = {"name": "answer", "schema": wanted.schema_, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def _generation(asked: CreateMessage, dialect: Dialect) -> Json:
    """Return the fields that control the answer."""
    user_id = asked.metadata.user_id if asked.metadata is not None else None
    fields: dict[str, JsonValue] = {
        dialect.limit_field: asked.max_tokens,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": asked.top_k,
        "stop": list(asked.stop_sequences) if asked.stop_sequences else None,
        "user": user_id if user_id and len(user_id) <= _LONGEST_USER else None,
    }
    if asked.stream:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    effort = asked.output_config.effort if asked.output_config is not None else None
    if dialect.of_reasoning is None:  # else the endpoint is known, and this is not one of its reasoning models
        fields["reasoning_effort"] = effort
    return {name: value for name, value in fields.items() if value is not None}


def _tool(tool: AnyTool, place: str) -> Json:
    if isinstance(tool, AnthropicTool):
        refuse(place, f"{tool.type} is a tool of Anthropic's; send tools with an input_schema.")
    if tool.allowed_callers and "direct" not in tool.allowed_callers:
        refuse(f"{place}.allowed_callers", "only the model itself calls tools.")
    function: Json = tool.model_dump(include={"name", "description", "strict"}, exclude_none=True)
    examples: Json = {"examples": [*tool.input_examples]} if tool.input_examples else {}
    return {"type": "function", "function": {**function, "parameters": {**tool.input_schema, **examples}}}


_BETWEEN: Final = "\n\n"
_BILLING: Final = "x-anthropic-billing-header:"
"""Claude Code begins its system prompt with a block for Anthropic's billing, which differs in each request."""
_FAILED: Final = "The tool failed:"
_PDF: Final = "application/pdf"
_Block = TypeVar("_Block")


def refuse(param: str, reason: str) -> Never:
    """Refuse what an engine behind chat completions cannot be given. Raises InvalidRequest (400)."""
    raise InvalidRequest(f"{param}: {reason}", param=param, code="not_supported")


def _system(system: str | tuple[TextParam, ...] | None) -> str:
    if isinstance(system, str):
        return system
    return _BETWEEN.join(_text(block, "system") for block in system or () if not block.text.startswith(_BILLING))


def _of_user(message: UserMessage, place: str) -> Iterator[Json]:
    """Return the results of tools as messages of their own, then all else.

    A tool's message holds text alone, so pictures of a result follow in the user's message.
    """
    parts: list[Json] = []
    blocks = _blocks(message.content)
    has_results = any(isinstance(block, ToolResultParam) for block in blocks)
    for index, block in enumerate(blocks):
        where = f"{place}.content.{index}"
        if isinstance(block, ToolResultParam):
            text, pictures = _result(block, where)
            yield {"role": "tool", "tool_call_id": block.tool_use_id, "content": text}
            parts += pictures
        else:
            parts += _parts(block, where)
    if parts or not has_results:
        yield {"role": "user", "content": _shortest(parts)}


def _of_assistant(message: AssistantMessage, place: str) -> Json:
    texts: list[Json] = []
    thoughts: list[str] = []
    calls: list[JsonValue] = []
    for index, block in enumerate(_blocks(message.content)):
        where = f"{place}.content.{index}"
        match block:
            case TextParam():
                texts.append(_text_part(_text(block, where)))
            case ThinkingParam():
                thoughts.append(block.thinking)
            case RedactedThinkingParam():
                thought = hidden_thought(block.data)
                thoughts.append(thought or refuse(where, "redacted thinking can be read by its own API alone."))
            case ToolUseParam():
                if block.caller is not None and block.caller.get("type") != "direct":
                    refuse(f"{where}.caller", "only the model itself calls tools.")
                _refuse_given(f"{where}.toolset_name", block.toolset_name, "toolsets belong to Anthropic's own tools.")
                arguments = json_text(block.input).decode()
                calls.append(
                    {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}
                )
    found: Json = {"role": "assistant", "content": _shortest(texts) if texts else None if calls else ""}
    found |= {"tool_calls": calls} if calls else {}
    return found | ({EARLIER_THINKING: _BETWEEN.join(thoughts)} if thoughts else {})


def _result(block: ToolResultParam, place: str) -> tuple[str, list[Json]]:
    """Return the text of a tool's result, and its pictures and files, introduced by a line that names the call."""
    _refuse_given(f"{place}.toolset_name", block.toolset_name, "toolsets belong to Anthropic's own tools.")
    blocks = enumerate(_blocks(block.content or ()))
    parts = [part for index, one in blocks for part in _parts(one, f"{place}.content.{index}")]
    texts = [str(part["text"]) for part in parts if part["type"] == "text"]
    others = [part for part in parts if part["type"] != "text"]
    if others:
        others.insert(0, _text_part(f"{FROM_TOOL} {block.tool_use_id}:"))
    if block.is_error:
        texts.insert(0, _FAILED)
    return _BETWEEN.join(texts), others


def _parts(block: TextParam | ImageParam | DocumentParam | SearchResultParam, place: str) -> list[Json]:
    match block:
        case TextParam():
            return [_text_part(_text(block, place))]
        case ImageParam():
            _refuse_given(f"{place}.transformations", block.transformations, "the engine does not transform images.")
            match block.source:
                case Base64Source(media_type=media_type, data=data):
                    url = f"data:{media_type};base64,{data}"
                case UrlSource(url=address):
                    url = address
                case _:
                    refuse(f"{place}.source", "files at Anthropic cannot be read here; send the image as base64.")
            return [{"type": "image_url", "image_url": {"url": url}}]
        case DocumentParam():
            return _document(block, place)
        case SearchResultParam():
            _refuse_citations(block, place)
            texts = [_text(inner, place) for inner in block.content]
            return [_text_part("\n".join((block.title, block.source, *texts)))]


def _document(block: DocumentParam, place: str) -> list[Json]:
    _refuse_citations(block, place)
    head = [_text_part(text) for text in (block.title, block.context) if text]
    match block.source:
        case TextSource(data=data):
            return [*head, _text_part(data)]
        case BlocksSource(content=inner):
            return [*head, *(part for one in _blocks(inner) for part in _parts(one, f"{place}.source"))]
        case Base64Source(media_type=media_type, data=data) if media_type == _PDF:
            file: Json = {"filename": block.title or "document.pdf", "file_data": f"data:{_PDF};base64,{data}"}
            return [*head, {"type": "file", "file": file}]
        case _:
            refuse(f"{place}.source", "a document is a PDF as base64, a text, or blocks.")


def _blocks(content: str | tuple[_Block, ...]) -> Sequence[_Block | TextParam]:
    """Return the blocks of a content; a text is one."""
    return (TextParam(type="text", text=content),) if isinstance(content, str) else content


def _text(block: TextParam, place: str) -> str:
    _refuse_given(f"{place}.citations", block.citations, "chats hold no citations.")
    return block.text


def _refuse_citations(block: DocumentParam | SearchResultParam, place: str) -> None:
    if block.citations is not None and block.citations.enabled:
        refuse(f"{place}.citations", "the engine does not cite.")


def _refuse_given(param: str, value: object, reason: str) -> None:
    if value:
        refuse(param, reason)


def _text_part(text: str) -> Json:
    return {"type": "text", "text": text}


def _shortest(parts: Sequence[Json]) -> JsonValue:
    """Return a single text as a string, which every engine takes, and anything else as parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return [*parts]
