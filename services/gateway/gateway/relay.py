"""The engine's stream on its way to the client: whole events pass as they are; memory rides on the last ones.

What a client sees when the engine is lost in mid-stream is an ``error`` event, and then the end.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import cast

import orjson
from memloop.clients import RawResponse
from memloop.wire.chat import ChatMemory, Json
from memloop.wire.errors import DependencyError, EngineError

from gateway.chat_memory import ChatTurn
from gateway.meter import Meter
from gateway.services import Services
from gateway.sse import DONE, EventCutter, data_event, data_of, error_event
from gateway.upstream import count_error, soon

_DONE_DATA = b"[DONE]"
_HEAD = ("id", "created", "model", "system_fingerprint")


async def relay(services: Services, upstream: RawResponse, meter: Meter) -> AsyncGenerator[bytes, None]:
    """The engine's events, untouched and unread."""
    try:
        async for event in _events(upstream, meter):
            yield event
    except DependencyError as error:
        count_error(services, error)
        yield error_event(soon(error))


async def relay_chat(
    services: Services, upstream: RawResponse, turn: ChatTurn, meter: Meter
) -> AsyncGenerator[bytes, None]:
    """The engine's events, and what memory did on the usage chunk, else on a chunk of its own before ``[DONE]``."""
    stream = _ChatStream(services, turn, meter)
    try:
        async for event in _events(upstream, meter):
            async for outgoing in stream.passed_on(event):
                yield outgoing
        async for outgoing in stream.ending():
            yield outgoing
    except DependencyError as error:
        count_error(services, error)
        yield error_event(soon(error))
    finally:
        await stream.write_if_answered()


async def _events(upstream: RawResponse, meter: Meter) -> AsyncIterator[bytes]:
    cutter = EventCutter()
    async for data in upstream.chunks():
        meter.first_byte()
        for event in cutter.feed(data):
            yield event


class _ChatStream:
    """What is known of a chat's answer while it streams by. Choice 0 is the one that is remembered."""

    def __init__(self, services: Services, turn: ChatTurn, meter: Meter) -> None:
        self._services = services
        self._turn = turn
        self._meter = meter
        self._texts: list[str] = []
        self._head: Json = {}
        self._answered = False
        self._failed = False
        self._done = False
        self._told = False
        self._memory: ChatMemory | None = None

    async def passed_on(self, event: bytes) -> AsyncIterator[bytes]:
        """The event as the client gets it."""
        data = data_of(event)
        if data == _DONE_DATA:
            self._done = True
            async for last in self._last_word():
                yield last
            yield event
            return
        chunk = _object(data)
        self._read(chunk)
        if _is_usage(chunk) and not self._failed:
            self._meter.tokens(chunk["usage"])
            self._told = True
            yield data_event({**chunk, "memory": (await self._settled()).model_dump()})
        else:
            yield event

    async def ending(self) -> AsyncIterator[bytes]:
        """What is missing when the engine has closed the stream: nothing, or its proper end, or an error."""
        if self._done or self._failed:
            return
        if not self._answered:
            raise EngineError("the engine ended its stream before the answer was complete")
        async for last in self._last_word():
            yield last
        yield DONE

    async def write_if_answered(self) -> None:
        """Queue the write of an answer that was complete, also when the client has left without its last events."""
        if self._answered and not self._failed:
            await self._settled()

    async def _last_word(self) -> AsyncIterator[bytes]:
        if not self._told and not self._failed:
            self._told = True
            memory = (await self._settled()).model_dump()
            yield data_event({"object": "chat.completion.chunk", **self._head, "choices": [], "memory": memory})

    async def _settled(self) -> ChatMemory:
        if self._memory is None:
            with self._meter.ours():
                self._memory = await self._turn.answered(self._services, "".join(self._texts))
        return self._memory

    def _read(self, chunk: Json) -> None:
        if not self._head:
            self._head = {name: chunk[name] for name in _HEAD if name in chunk}
        self._failed = self._failed or "error" in chunk
        for choice in _objects(chunk.get("choices")):
            if choice.get("index", 0) == 0:
                content = _mapping(choice.get("delta")).get("content")
                self._texts.append(content if isinstance(content, str) else "")
                self._answered = self._answered or choice.get("finish_reason") is not None


def _is_usage(chunk: Json) -> bool:
    return chunk.get("choices") == [] and isinstance(chunk.get("usage"), dict)


def _object(data: bytes) -> Json:
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return cast(Json, value) if isinstance(value, dict) else {}


def _mapping(value: object) -> Mapping[str, object]:
    return cast(Mapping[str, object], value) if isinstance(value, dict) else {}


def _objects(value: object) -> Sequence[Mapping[str, object]]:
    return [_mapping(part) for part in cast(list[object], value)] if isinstance(value, list) else []
