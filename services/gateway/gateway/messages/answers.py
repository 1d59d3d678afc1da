"""Translates an engine's chat completion to a message.

Source: Anthropic's API reference, "Messages", and OpenAI's, "Chat Completions". vLLM names the stop string that it met
``stop_reason``, SGLang ``matched_stop``; thinking is ``reasoning`` in vLLM and ``reasoning_content`` in others.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue
from pydantic_core import from_json

from gateway.messages.blocks import RedactedThinkingParam, ThinkingParam, hidden_block, signature_of
from memloop.wire.base import Wire
from memloop.wire.chat import ChatMemory, Json, thinking_in
from memloop.wire.errors import EngineError
from memloop_service.http import object_in, objects_in

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]
_REASONS: Final[dict[object, StopReason]] = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_MATCHED: Final = ("stop_reason", "matched_stop")


class TextBlock(Wire):
    """A text of the model."""

    type: Literal["text"] = "text"
    text: str


class ToolUseBlock(Wire):
    """A tool call."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: Json


class OutputTokens(Wire):
    """The part of the output that was thinking."""

    thinking_tokens: int


class MessageUsage(Wire):
    """The tokens. ``input_tokens`` are those that the engine's cache did not hold."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens_details: OutputTokens | None = None


class MessageAnswer(Wire):
    """A message of the model."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: tuple[ThinkingParam | RedactedThinkingParam | TextBlock | ToolUseBlock, ...] = ()
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    usage: MessageUsage
    memory: ChatMemory | None = None
    """What the gateway adds."""


class TokenCount(Wire):
    """The answer of a token count."""

    input_tokens: int


def message_of(answer: Json, *, model: str, stops: Sequence[str], thinking: bool) -> Json:
    """Translate a chat completion. ``thinking``: whether thoughts are shown. Raises EngineError for another object."""
    choices = objects_in(answer.get("choices"))
    if not choices:
        raise EngineError("the engine's answer is not a chat completion")
    choice = choices[0]
    said = object_in(choice.get("message"))
    thought, calls, blocks = thinking_in(said), objects_in(said.get("tool_calls")), list[JsonValue]()
    if thinking and thought:
        signature = signature_of(hashlib.sha256(thought.encode()).digest())
        blocks.append({"type": "thinking", "thinking": thought, "signature": signature})
    if text := text_in(said):
        blocks.append({"type": "text", "text": text})
    if thought and calls and not thinking:
        blocks.append(hidden_block(thought))
    for call in calls:
        function = object_in(call.get("function"))
        given = input_of(str(function["arguments"]))
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": given})
    reason, sequence = stop_of(choice, stops, calls=bool(calls), refused=bool(said.get("refusal")))
    ended: Json = {"content": blocks, "stop_reason": reason, "stop_sequence": sequence}
    return begun_message(model, answer.get("usage")) | ended


def begun_message(model: str, usage: object) -> Json:
    """Return a ``MessageAnswer`` without content."""
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_of(usage),
    }


def stop_of(choice: Json, stops: Sequence[str], *, calls: bool, refused: bool) -> tuple[StopReason, str | None]:
    """Return why the model stopped, and the stop sequence that it met. Some engines end tool calls with ``stop``."""
    if refused:
        return "refusal", None
    if reason := _REASONS.get(choice.get("finish_reason")):
        return reason, None
    matched = next((value for name in _MATCHED if isinstance(value := choice.get(name), str) and value in stops), None)
    if matched is not None:
        return "stop_sequence", matched
    return ("tool_use" if calls else "end_turn"), None


def usage_of(usage: object) -> Json:
    """Translate the engine's usage to a ``MessageUsage``; zeros where it reports none."""
    given = object_in(usage)
    cached = _count(object_in(given.get("prompt_tokens_details")).get("cached_tokens"))
    thought = object_in(given.get("completion_tokens_details")).get("reasoning_tokens")
    counts: Json = {
        "input_tokens": max(0, _count(given.get("prompt_tokens")) - cached),
        "output_tokens": _count(given.get("completion_tokens")),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
    }
    return {**counts, "output_tokens_details": {"thinking_tokens": thought}} if isinstance(thought, int) else counts


def text_in(said: Json) -> str:
    """Return the text of a message or of a piece of one, a refusal's included."""
    return "".join(text for text in (said.get("content"), said.get("refusal")) if isinstance(text, str))


def input_of(arguments: str) -> Json:
    """Parse a call's arguments; those that a limit has cut off are read as far as they go. Raises EngineError."""
    try:
        found: JsonValue = from_json(arguments, allow_partial=True)
    except ValueError as error:
        raise EngineError("the arguments of the engine's tool call are not JSON") from error
    if not isinstance(found, dict):
        raise EngineError("the arguments of the engine's tool call are not a JSON object")
    return found


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
