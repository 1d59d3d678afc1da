"""Translates the events of a chat completion's stream to a message's, in the order that Anthropic documents.

``message_start``, ``ping``, for each block ``content_block_start``, its deltas and ``content_block_stop``, then
``message_delta`` and ``message_stop``; ``error`` instead of the rest when the stream breaks.
"""

from collections.abc import Sequence
from typing import Final

import orjson

from gateway.chat import ChatSink
from gateway.engine import Meter
from gateway.messages.answers import Blocks, begun_message, usage_of
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_service.http import Sink, error_event, object_in

_TEXT_DELTA: Final = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%b}}\n\n'
)


class MessageStream(ChatSink):
    """A sink of chat events that passes message events on to ``out``."""

    def __init__(
        self, out: Sink, meter: Meter, *, model: str, stops: Sequence[str], thinking: bool, asked: int = 0
    ) -> None:
        """``asked`` is the estimate of the prompt's tokens, until the engine reports them."""
        super().__init__(out, meter)
        self.usage = {"prompt_tokens": asked}
        self._model = model
        self._stops = stops
        self._blocks = Blocks(thinking=thinking)
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
        delta = self._blocks.stopped(self._last, self._stops)
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
            self.add({"type": "message_start", "message": begun_message(self._model, self.usage)}, {"type": "ping"})
