"""Relays a chat's stream to its client, with the memory field on a chunk that every client reads.

A client of another API gets that API's events, which a ``ChatSink`` makes of the chat's.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from typing import Final

import orjson

from gateway.chat.chat import Chat
from gateway.chat.memory import ChatTurn, with_memory, written
from gateway.engine import Meter, More, only_text, send_broken
from memloop.sse import EventCutter, data_of
from memloop.wire.chat import ChatMemory, Json
from memloop.wire.errors import DependencyError
from memloop_clients.replies import index_of
from memloop_clients.reply_stream import ReplyStream, StreamEvent
from memloop_service.http import Sink, data_event, object_in, objects_in, parsed_object

_DONE: Final = b"[DONE]"


class ChatStream:
    """Relays the engine's events in OpenAI's form, with the memory field. Only choice 0 is remembered.

    The field rides on the usage chunk of a client that asked for the usage, else on the chunk with the finish reason:
    clients that asked for nothing read ``choices[0]`` of every chunk. ``hides_usage``: the client did not ask.
    """

    def __init__(self, chat: Chat, turn: ChatTurn, meter: Meter, reply: ReplyStream, *, hides_usage: bool) -> None:
        self._reply = reply
        self._chat = chat
        self._turn = turn
        self._meter = meter
        self._hides_usage = hides_usage
        self._usage: Json = {}
        self._texts: list[str] = []
        self._last: Json = {}
        self._sent_memory = False
        self._memory: ChatMemory | None = None
        self._usage_was_first = False

    async def relay(self, more: More, out: Sink) -> None:
        """Relay the stream to its end, and queue the write of a complete answer whether or not its client stays."""
        cutter = EventCutter()
        try:
            while data := await more():
                self._meter.first_byte()
                await self._pass_on(cutter.feed(data), out)
            for event in self._reply.close():
                await out.send(await self._shown(event))
        except DependencyError as error:
            await send_broken(error, self._meter, out)
        finally:
            if self._usage:
                self._meter.tokens(self._usage)
            if self._reply.is_answered:
                await self._settled(waits=False)
                if self._usage and not self._usage_was_first:  # a chat that was cut is counted here
                    await self._turn.cut(self._chat, self._usage)
            self._meter.finish()

    async def _pass_on(self, events: Sequence[bytes], out: Sink) -> None:
        """Send the events, consecutive texts at once. Before an event that may wait for a write the texts are sent."""
        texts: list[bytes] = []
        for event in events:
            self._meter.streamed()
            if self._reply.may_skip_texts and (text := only_text(event)):
                self._texts.append(text)
                texts.append(event)
                continue
            if texts:
                await out.send(b"".join(texts))
                texts.clear()
            for read in self._reply.read(event):
                if shown := await self._shown(read):
                    await out.send(shown)
        if texts:
            await out.send(b"".join(texts))

    async def _shown(self, event: StreamEvent) -> bytes:
        """Return the event for the client, with or after the memory field if that is due."""
        if event.is_done:
            if self._sent_memory or self._reply.failed:
                return event.raw
            # For a client that asked for the usage of an engine that reports none
            return await self._with_memory({**self._last, "choices": []}) + event.raw
        self._last = {name: value for name, value in event.chunk.items() if name != "usage"} or self._last
        self._usage = object_in(event.chunk.get("usage")) or self._usage
        for choice in objects_in(event.chunk.get("choices")):
            if index_of(choice) == 0:
                content = object_in(choice.get("delta")).get("content")
                self._texts.append(content if isinstance(content, str) else "")
        if self._reply.failed or self._sent_memory:
            return b"" if self._hides_usage and event.is_usage else event.raw
        if event.is_usage:
            if self._hides_usage:
                return b""
            return await self._with_memory(event.chunk) if self._reply.is_answered else event.raw
        ends = any(
            index_of(choice) == 0 and choice.get("finish_reason") is not None
            for choice in objects_in(event.chunk.get("choices"))
        )
        return await self._with_memory(event.chunk) if self._hides_usage and ends else event.raw

    async def _with_memory(self, chunk: Json) -> bytes:
        self._sent_memory = True
        memory = await self._settled()
        return data_event(written(with_memory(chunk, memory)))

    async def _settled(self, *, waits: bool = True) -> ChatMemory:
        if self._memory is None:
            self._usage_was_first = bool(self._usage)
            with self._meter.ours():
                self._memory = await self._turn.answered(
                    self._chat, "".join(self._texts), usage=self._usage, waits=waits
                )
        return self._memory


class ChatSink(ABC):
    """Takes a chat's events and sends those of another API to ``out``; what came together is sent together."""

    def __init__(self, out: Sink, meter: Meter) -> None:
        self.usage: Json = {}
        self.memory: Json = {}
        self.over = False
        self.meter = meter
        self._out = out
        self._cutter = EventCutter()
        self._in_text = False
        self.shown: list[bytes] = []
        """Events that are not sent yet."""

    @abstractmethod
    def takes_texts(self) -> bool:
        """Return whether the next texts of the answer may be given to ``of_texts``."""

    @abstractmethod
    def of_texts(self, texts: Sequence[str]) -> bytes:
        """Take deltas that are nothing but text; return their events."""

    @abstractmethod
    def take(self, choice: Json) -> None:
        """Add the events of a piece of the answer. Raises EngineError for one that the API cannot hold."""

    @abstractmethod
    async def ended(self) -> None:
        """Add the last events."""

    @abstractmethod
    def failed(self, chunk: Json) -> None:
        """Add the last events of an answer that broke off: the chunk has its ``error``."""

    async def send(self, events: bytes) -> None:
        """Take events of the chat. Raises EngineError as ``take`` does."""
        texts: list[str] = []
        for event in self._cutter.feed(events):
            # Consecutive pieces of text, which nearly all are, need nothing but to be passed on
            if self._in_text and (text := only_text(event)):
                texts.append(text)
                continue
            if texts:
                self.shown.append(self.of_texts(texts))
                texts = []
            if not self.over:
                await self._read(event)
                self._in_text = self.takes_texts()
        if texts:
            self.shown.append(self.of_texts(texts))
        if self.shown:
            await self.flush()

    def add(self, *events: Json) -> None:
        """Put events to those that are sent together."""
        self.shown += [data_event(orjson.dumps(event), kind=str(event["type"])) for event in events]

    def flush(self) -> Awaitable[None]:
        """Send what there is."""
        shown, self.shown = b"".join(self.shown), []
        return self._out.send(shown)

    async def _read(self, event: bytes) -> None:
        data = data_of(event)
        chunk = parsed_object(data)
        if not data:  # a comment
            self.shown.append(event)
        elif data == _DONE:
            self.over = True
            await self.ended()
        elif chunk.get("error"):
            self.over = True
            self.failed(chunk)
        else:
            with self.meter.ours():
                self.usage = object_in(chunk.get("usage")) or self.usage
                self.memory = object_in(chunk.get("memory")) or self.memory
                for choice in objects_in(chunk.get("choices")):
                    if index_of(choice) == 0:
                        self.take(choice)
