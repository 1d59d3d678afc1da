"""Relays a chat's stream to its client, with the memory field on the last chunk."""

from collections.abc import Mapping, Sequence

import orjson

from gateway.chat.chat import Chat
from gateway.chat.memory import ChatTurn
from gateway.engine import Meter, only_text, send_broken
from memloop.sse import EventCutter, data_of
from memloop.wire.chat import ChatMemory, Json
from memloop.wire.errors import DependencyError, EngineError
from memloop_clients import RawResponse
from memloop_service.http import DONE, Sink, data_event, object_in, objects_in, parsed_object

_DONE_DATA = b"[DONE]"
_HEAD = ("id", "created", "model", "system_fingerprint")


async def relay_chat(
    chat: Chat, upstream: RawResponse, turn: ChatTurn, meter: Meter, out: Sink, *, hides_usage: bool
) -> None:
    """Relay the engine's events; add the memory field to the usage chunk, or to a chunk before ``[DONE]``.

    ``hides_usage`` leaves out the chunk with the usage alone.
    """
    stream, cutter = _ChatStream(chat, turn, meter, hides_usage=hides_usage), EventCutter()
    try:
        while data := await upstream.some():
            meter.first_byte()
            await _pass_on(cutter.feed(data), stream, meter, out)
        if missing := await stream.ending():
            await out.send(missing)
    except DependencyError as error:
        await send_broken(error, meter, out)
    finally:
        stream.count()
        await stream.write_if_answered()
        meter.finish()


async def _pass_on(events: Sequence[bytes], stream: "_ChatStream", meter: Meter, out: Sink) -> None:
    """Send the events, consecutive texts at once. Before an event that may wait for a write the texts are sent."""
    texts: list[bytes] = []
    for event in events:
        meter.streamed(event)
        if stream.is_text(event):
            texts.append(event)
            continue
        if texts:
            await out.send(b"".join(texts))
            texts.clear()
        if shown := await stream.passed_on(event):
            await out.send(shown)
    if texts:
        await out.send(b"".join(texts))


class _ChatStream:
    """Tracks a chat's answer while it streams. Only choice 0 is remembered."""

    def __init__(self, chat: Chat, turn: ChatTurn, meter: Meter, *, hides_usage: bool) -> None:
        self._chat = chat
        self._turn = turn
        self._meter = meter
        self._hides_usage = hides_usage
        self._usage: Json = {}
        self._texts: list[str] = []
        self._head: Json = {}
        self._answered = False
        self._failed = False
        self._done = False
        self._sent_memory = False
        self._memory: ChatMemory | None = None

    def is_text(self, event: bytes) -> bool:
        """Return whether the event adds nothing but text, which is then noted."""
        text = only_text(event) if self._head else None
        if not text:
            return False
        self._texts.append(text)
        return True

    async def passed_on(self, event: bytes) -> bytes:
        """Return the event for the client, preceded by a memory chunk if one is due."""
        data = data_of(event)
        if data == _DONE_DATA:
            self._done = True
            return await self._last_word() + event
        chunk = parsed_object(data)
        self._read(chunk)
        if not _is_usage(chunk) or self._failed:
            return event
        return b"" if self._hides_usage else await self._with_memory(chunk)

    def count(self) -> None:
        """Count the tokens that the engine has reported last."""
        if self._usage:
            self._meter.tokens(self._usage)

    async def ending(self) -> bytes:
        """Return the missing end of a stream that the engine closed, or b"" if it is complete. Raises EngineError."""
        if self._done or self._failed:
            return b""
        if not self._answered:
            raise EngineError("the engine closed the stream before the answer was complete")
        return await self._last_word() + DONE

    async def write_if_answered(self) -> None:
        """Queue the write of a complete answer, even if the client disconnected before its last events."""
        if self._answered and not self._failed:
            await self._settled(waits=False)

    async def _last_word(self) -> bytes:
        if self._sent_memory or self._failed:
            return b""
        return await self._with_memory({"object": "chat.completion.chunk", **self._head, "choices": []})

    async def _with_memory(self, chunk: Json) -> bytes:
        self._sent_memory = True
        memory = await self._settled()
        return data_event(written(with_memory(chunk, memory)))

    async def _settled(self, *, waits: bool = True) -> ChatMemory:
        if self._memory is None:
            with self._meter.ours():
                self._memory = await self._turn.answered(self._chat, "".join(self._texts), waits=waits)
        return self._memory

    def _read(self, chunk: Json) -> None:
        if not self._head:
            self._head = {name: chunk[name] for name in _HEAD if name in chunk}
        self._usage = object_in(chunk.get("usage")) or self._usage
        self._failed = self._failed or "error" in chunk
        for choice in objects_in(chunk.get("choices")):
            if choice.get("index", 0) == 0:
                content = object_in(choice.get("delta")).get("content")
                self._texts.append(content if isinstance(content, str) else "")
                self._answered = self._answered or choice.get("finish_reason") is not None


def with_memory(answer: Json, memory: ChatMemory) -> Json:
    """Return the engine's object with memory's part."""
    return {**answer, "memory": memory.model_dump()}


def written(answer: Mapping[str, object]) -> bytes:
    """Encode an answer as JSON. Raises EngineError when it is nested too deeply."""
    try:
        return orjson.dumps(answer)
    except orjson.JSONEncodeError as error:
        raise EngineError("the engine's answer is nested too deeply") from error


def _is_usage(chunk: Json) -> bool:
    return chunk.get("choices") == [] and isinstance(chunk.get("usage"), dict)
