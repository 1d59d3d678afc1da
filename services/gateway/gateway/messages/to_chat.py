"""Translates the messages of a request to a chat's.

Everything that a chat can hold is carried; the rest is refused with a 400 that names it. docs/how-to/anthropic.md lists
what becomes of each block and field.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Never, cast

from pydantic import JsonValue

from gateway.messages.blocks import (
    AssistantMessage,
    Base64Source,
    BlocksSource,
    DocumentParam,
    ImageParam,
    Message,
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
from memloop.wire.chat import EARLIER_THINKING, Json
from memloop.wire.errors import InvalidRequest
from memloop_service.http import json_text

_BETWEEN: Final = "\n\n"
_BILLING: Final = "x-anthropic-billing-header:"
"""Claude Code begins its system prompt with a block for Anthropic's billing, which differs in each request."""
_FAILED: Final = "The tool failed:"
_PDF: Final = "application/pdf"


def refuse(param: str, reason: str) -> Never:
    """Refuse what an engine behind chat completions cannot be given. Raises InvalidRequest (400)."""
    raise InvalidRequest(f"{param}: {reason}", param=param, code="not_supported")


def system_prompt(system: str | tuple[TextParam, ...] | None) -> str:
    """Return the system prompt as one text."""
    if isinstance(system, str):
        return system
    return _BETWEEN.join(_text(block, "system") for block in system or () if not block.text.startswith(_BILLING))


def chat_messages(message: Message, place: str) -> Iterator[Json]:
    """Return the chat's messages for one message. ``place`` names it in errors. Raises InvalidRequest."""
    match message:
        case UserMessage():
            yield from _of_user(message, place)
        case AssistantMessage():
            yield _of_assistant(message, place)
        case SystemMessage():
            yield {"role": "system", "content": system_prompt(message.content)}


def _of_user(message: UserMessage, place: str) -> Iterator[Json]:
    """Return the results of tools as messages of their own, then all else.

    A tool's message holds text alone, so pictures of a result follow in the user's message.
    """
    if isinstance(message.content, str):
        yield {"role": "user", "content": message.content}
        return
    parts: list[Json] = []
    has_results = any(isinstance(block, ToolResultParam) for block in message.content)
    for index, block in enumerate(message.content):
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
    if isinstance(message.content, str):
        return {"role": "assistant", "content": message.content}
    texts: list[Json] = []
    thoughts: list[str] = []
    calls: list[JsonValue] = []
    for index, block in enumerate(message.content):
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
    texts: list[str] = []
    others: list[Json] = []
    if isinstance(block.content, str):
        texts.append(block.content)
    else:
        for index, inner in enumerate(block.content or ()):
            for part in _parts(inner, f"{place}.content.{index}"):
                if part["type"] == "text":
                    texts.append(cast(str, part["text"]))
                else:
                    others.append(part)
    if others:
        others.insert(0, _text_part(f"From the result of the tool call {block.tool_use_id}:"))
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
            blocks = () if isinstance(inner, str) else inner
            texts = [_text_part(inner)] if isinstance(inner, str) else []
            return [*head, *texts, *(part for block in blocks for part in _parts(block, f"{place}.source"))]
        case Base64Source(media_type=media_type, data=data) if media_type == _PDF:
            file: Json = {"filename": block.title or "document.pdf", "file_data": f"data:{_PDF};base64,{data}"}
            return [*head, {"type": "file", "file": file}]
        case _:
            refuse(f"{place}.source", "a document is a PDF as base64, a text, or blocks.")


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
    return list(cast(Iterable[JsonValue], parts))
