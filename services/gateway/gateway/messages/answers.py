"""Translates an engine's chat completion to a message, whole or as a stream of events.

Source: Anthropic's API reference, "Messages", and OpenAI's, "Chat Completions". vLLM names the stop string that it met
``stop_reason``, SGLang ``matched_stop``; thinking is ``reasoning`` in vLLM and ``reasoning_content`` in others.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import orjson
from pydantic import JsonValue
from pydantic_core import from_json

from gateway.chat import ChatSink
from gateway.engine import Meter
from gateway.messages.blocks import RedactedThinkingParam, ThinkingParam, hidden_block, signature_of
from gateway.messages.requests import CreateMessage
from memloop.wire.base import Wire
from memloop.wire.chat import ChatMemory, Json, thinking_in
from memloop.wire.errors import EngineError
from memloop_service.http import Sink, error_event, object_in, objects_in

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]
_REASONS: Final[dict[object, StopReason]] = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_MATCHED: Final = ("stop_reason", "matched_stop")
_TEXTS: Final = ("content", "refusal")
Kind: TypeAlias = Literal["text", "thinking", "redacted_thinking", "tool_use"]


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


class Blocks:
    """The content of a message as it grows: a chat's deltas in, or its whole message as one, a message's events out.

    ``thinking``: whether thoughts are shown.
    """

    def __init__(self, *, thinking: bool) -> None:
        self._shows_thinking = thinking
        self._checksum = hashlib.sha256()
        self._hidden: list[str] = []
        """Thoughts that the client did not ask for."""
        self._arguments: list[str] = []
        """What has come of the open call's."""
        self._calls = 0
        self._refused = False
        self.open: Kind | None = None
        self.index = -1

    def feed(self, said: Json) -> Iterator[Json]:
        """Return the events of a delta."""
        self._refused = self._refused or bool(said.get("refusal"))
        thought = thinking_in(said)
        if thought and not self._shows_thinking:
            self._hidden.append(thought)
        elif thought:
            if self.open != "thinking":
                yield from self._begin("thinking", {"thinking": "", "signature": ""})
            self._checksum.update(thought.encode())
            yield self._piece({"type": "thinking_delta", "thinking": thought})
        if text := "".join(text for name in _TEXTS if isinstance(text := said.get(name), str)):
            if self.open != "text":
                yield from self._begin("text", {"text": ""})
            yield self._piece({"type": "text_delta", "text": text})
        for call in objects_in(said.get("tool_calls")):
            function = object_in(call.get("function"))
            if "id" in call:
                self._calls += 1
                if self._hidden:
                    yield from self._begin("redacted_thinking", hidden_block("".join(self._hidden)))
                    self._hidden = []
                yield from self._begin("tool_use", {"id": call["id"], "name": function["name"], "input": {}})
            if more := str(function.get("arguments") or ""):
                self._arguments.append(more)
                yield self._piece({"type": "input_json_delta", "partial_json": more})

    def end(self) -> Iterator[Json]:
        """End the open block. Raises EngineError for a call whose arguments are no object."""
        if self.open is None:
            return
        if self.open == "thinking":
            yield self._piece({"type": "signature_delta", "signature": signature_of(self._checksum.digest())})
            self._checksum = hashlib.sha256()
        elif self.open == "tool_use":
            input_of("".join(self._arguments))  # a client would stumble over it later
            self._arguments = []
        self.open = None
        yield {"type": "content_block_stop", "index": self.index}

    def stopped(self, choice: Json, stops: Sequence[str] | None) -> Json:
        """Return why the model stopped, and the stop sequence that it met. Some engines end calls with ``stop``."""
        reason: StopReason = "tool_use" if self._calls else "end_turn"
        reason, matched = _REASONS.get(choice.get("finish_reason"), reason), None
        if self._refused:
            reason = "refusal"
        elif choice.get("finish_reason") not in _REASONS:
            found = (
                value for name in _MATCHED if isinstance(value := choice.get(name), str) and value in (stops or ())
            )
            matched = next(found, None)
        return {"stop_reason": reason if matched is None else "stop_sequence", "stop_sequence": matched}

    def _begin(self, kind: Kind, block: Json) -> Iterator[Json]:
        yield from self.end()
        self.open = kind
        self.index += 1
        yield {"type": "content_block_start", "index": self.index, "content_block": {"type": kind, **block}}

    def _piece(self, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": self.index, "delta": delta}


def message_of(answer: Json, asked: CreateMessage) -> Json:
    """Translate a chat completion: what its events add up to. Raises EngineError for another object."""
    choices = objects_in(answer.get("choices"))
    if not choices:
        raise EngineError("the engine's answer is not a chat completion")
    blocks = Blocks(thinking=asked.shows_thinking)
    content: list[Json] = []
    for event in (*blocks.feed(object_in(choices[0].get("message"))), *blocks.end()):
        if "content_block" in event:
            content.append({**object_in(event["content_block"])})
        for name, piece in object_in(event.get("delta")).items():
            if name == "partial_json":
                content[-1]["input"] = input_of(str(piece))
            elif name != "type":
                content[-1][name] = f"{content[-1][name]}{piece}"
    ended: Json = {"content": [*content], **blocks.stopped(choices[0], asked.stop_sequences)}
    return begun_message(asked.model, answer.get("usage")) | ended


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


_TEXT_DELTA: Final = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%b}}\n\n'
)


class MessageStream(ChatSink):
    """A sink of chat events that passes message events on to ``out``, in the order that Anthropic documents.

    ``message_start``, ``ping``, for each block ``content_block_start``, its deltas and ``content_block_stop``, then
    ``message_delta`` and ``message_stop``; ``error`` instead of the rest when the stream breaks.
    """

    def __init__(self, out: Sink, meter: Meter, asked: CreateMessage, *, tokens: int = 0) -> None:
        """``tokens`` is the estimate of the prompt's, until the engine reports them."""
        super().__init__(out, meter)
        self.usage = {"prompt_tokens": tokens}
        self._asked = asked
        self._blocks = Blocks(thinking=asked.shows_thinking)
        self._last: Json = {}
        """The choice that has a finish reason."""
        self._started = False

    def takes_texts(self) -> bool:
        return self._blocks.open == "text"

    def of_texts(self, texts: Sequence[str]) -> bytes:
        index = self._blocks.index
        return b"".join([_TEXT_DELTA % (index, orjson.dumps(text)) for text in texts])

    def take(self, choice: Json) -> None:
        self._start()
        self.add(*self._blocks.feed(object_in(choice.get("delta"))))
        if choice.get("finish_reason") is not None:
            self._last = choice
            self.add(*self._blocks.end())

    async def ended(self) -> None:
        self._start()
        self.add(*self._blocks.end())
        delta = self._blocks.stopped(self._last, self._asked.stop_sequences)
        ended: Json = {"type": "message_delta", "delta": delta, "usage": usage_of(self.usage)}
        self.add({**ended, "memory": self.memory} if self.memory else ended, {"type": "message_stop"})

    def failed(self, chunk: Json) -> None:
        if chunk.get("type") == "error":  # in this API's style already
            self.add(chunk)
        else:
            self.shown.append(error_event(EngineError(str(object_in(chunk["error"]).get("message")))))

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self.add(
                {"type": "message_start", "message": begun_message(self._asked.model, self.usage)}, {"type": "ping"}
            )
