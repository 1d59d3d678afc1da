"""Translates the events of a chat completion's stream to a message's, in the order that Anthropic documents.

``message_start``, ``ping``, for each block ``content_block_start``, its deltas and ``content_block_stop``, then
``message_delta`` and ``message_stop``; ``error`` instead of the rest when the stream breaks.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import orjson
from pydantic import JsonValue

from gateway.engine import Meter, only_text, send_broken
from gateway.messages.answers import begun_message, input_of, stop_of, text_in, usage_of
from gateway.messages.blocks import hidden_block, signature_of
from memloop.sse import EventCutter, data_of
from memloop.wire.chat import Json, thinking_in
from memloop.wire.errors import DependencyError, EngineError
from memloop_service.http import Sink, data_event, error_event, object_in, objects_in, parsed_object

Kind: TypeAlias = Literal["text", "thinking", "redacted_thinking", "tool_use"]
_DONE: Final = b"[DONE]"
_TEXT_HEAD: Final = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":'
)
_TEXT_TAIL: Final = b"}}\n\n"
_PING: Final[Json] = {"type": "ping"}


class MessageStream:
    """A sink of chat events that passes message events on to ``out``."""

    def __init__(
        self, out: Sink, meter: Meter, *, model: str, stops: Sequence[str], thinking: bool, asked: int = 0
    ) -> None:
        """``asked`` is the estimate of the prompt's tokens, until the engine reports them."""
        self._out = out
        self._meter = meter
        self._model = model
        self._stops = stops
        self._shows_thinking = thinking
        self._cutter = EventCutter()
        self._calls = 0
        self._arguments: list[str] = []
        """What has come of the open call's."""
        self._checksum = hashlib.sha256()
        self._hidden: list[str] = []
        """Thoughts that the client did not ask for."""
        self._index = -1
        self._text_head = b""
        self._open: Kind | None = None
        self._usage: JsonValue = {"prompt_tokens": asked}
        self._memory: JsonValue = None
        self._last: Json | None = None
        """The choice that has a finish reason."""
        self._refused = False
        self._started = False
        self._over = False

    async def send(self, events: bytes) -> None:
        """Translate and pass on. Raises EngineError for events that a message cannot hold."""
        shown: list[bytes] = []
        for event in self._cutter.feed(events):
            if self._open == "text" and (text := only_text(event)):
                shown.append(b"".join((self._text_head, orjson.dumps(text), _TEXT_TAIL)))
            else:
                shown.extend(self._translated(event))
        if shown:
            await self._out.send(b"".join(shown))

    async def broken(self, error: DependencyError) -> None:
        """End the stream with an error."""
        if not self._over:
            await send_broken(error, self._meter, self)

    def _translated(self, event: bytes) -> Iterator[bytes]:
        data = data_of(event)
        if self._over:
            return
        if not data:
            yield event  # a comment
            return
        if data == _DONE:
            self._over = True
            yield from self._start()
            yield from self._close()
            calls = self._calls > 0
            reason, sequence = stop_of(self._last or {}, self._stops, calls=calls, refused=self._refused)
            delta: Json = {"stop_reason": reason, "stop_sequence": sequence}
            ended: Json = {"type": "message_delta", "delta": delta, "usage": usage_of(self._usage)}
            yield _event(ended if self._memory is None else {**ended, "memory": self._memory})
            yield _event({"type": "message_stop"})
            return
        chunk = parsed_object(data)
        if chunk.get("error"):
            self._over = True
            words = object_in(chunk["error"]).get("message")
            yield event if chunk.get("type") == "error" else error_event(EngineError(str(words)))
            return
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        self._memory = chunk.get("memory", self._memory)
        yield from self._start()
        for choice in objects_in(chunk.get("choices")):
            if choice.get("index", 0) == 0:
                yield from self._delta(object_in(choice.get("delta")))
                if choice.get("finish_reason") is not None:
                    self._last = choice
                    yield from self._close()

    def _start(self) -> Iterator[bytes]:
        if self._started:
            return
        self._started = True
        yield _event({"type": "message_start", "message": begun_message(self._model, self._usage)})
        yield _event(_PING)

    def _delta(self, said: Json) -> Iterator[bytes]:
        self._refused = self._refused or bool(said.get("refusal"))
        thought = thinking_in(said)
        if thought and not self._shows_thinking:
            self._hidden.append(thought)
        elif thought:
            yield from self._in_block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            self._checksum.update(thought.encode())
            yield self._piece({"type": "thinking_delta", "thinking": thought})
        if text := text_in(said):
            yield from self._in_block("text", {"type": "text", "text": ""})
            yield self._piece({"type": "text_delta", "text": text})
        for call in objects_in(said.get("tool_calls")):
            function = object_in(call.get("function"))
            if "id" in call:
                self._calls += 1
                if self._hidden:
                    yield from self._begin("redacted_thinking", hidden_block("".join(self._hidden)))
                    self._hidden = []
                block: Json = {"type": "tool_use", "id": call["id"], "name": function["name"], "input": {}}
                yield from self._begin("tool_use", block)
            if more := str(function.get("arguments") or ""):
                self._arguments.append(more)
                yield self._piece({"type": "input_json_delta", "partial_json": more})

    def _in_block(self, kind: Kind, block: Json) -> Iterator[bytes]:
        if self._open != kind:
            yield from self._begin(kind, block)

    def _begin(self, kind: Kind, block: Json) -> Iterator[bytes]:
        yield from self._close()
        self._open = kind
        self._index += 1
        self._text_head = _TEXT_HEAD % self._index
        yield _event({"type": "content_block_start", "index": self._index, "content_block": block})

    def _close(self) -> Iterator[bytes]:
        if self._open is None:
            return
        if self._open == "thinking":
            yield self._piece({"type": "signature_delta", "signature": signature_of(self._checksum.digest())})
            self._checksum = hashlib.sha256()
        elif self._open == "tool_use":
            input_of("".join(self._arguments))  # a client would stumble over it later
            self._arguments = []
        self._open = None
        yield _event({"type": "content_block_stop", "index": self._index})

    def _piece(self, delta: Json) -> bytes:
        return _event({"type": "content_block_delta", "index": self._index, "delta": delta})


def _event(value: Json) -> bytes:
    return data_event(orjson.dumps(value), kind=str(value["type"]))
