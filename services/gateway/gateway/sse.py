"""Server-sent events: cutting a byte stream into events, and sending one that stays alive and notices who left.

Source of the format: WHATWG HTML, "Server-sent events".
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.disconnect import ClientGone, stop_when_gone
from memloop.wire.errors import MemloopError

DONE = b"data: [DONE]\n\n"
HEARTBEAT = b": keep-alive\n\n"
_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_USUAL_END = b"\n\n"
_LONGEST_END = 4


class EventCutter:
    """Cuts bytes into whole events; what is left of an unfinished one waits for the next bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def whole(self, data: bytes) -> bytes:
        """The events that these bytes complete, in one piece. Bytes that end an event, as most do, are not searched."""
        if not self._rest and data.endswith(_USUAL_END):
            return data
        return b"".join(self.feed(data))

    def feed(self, data: bytes) -> list[bytes]:
        """The events that these bytes complete, each with its closing blank line."""
        seen = max(0, len(self._rest) - _LONGEST_END + 1)
        buffer = self._rest + data
        events: list[bytes] = []
        start = 0
        for end in _END_OF_EVENT.finditer(buffer, seen):
            events.append(buffer[start : end.end()])
            start = end.end()
        self._rest = buffer[start:]
        return events


def data_of(event: bytes) -> bytes:
    """The event's data, several ``data:`` lines joined by a newline; empty for a comment."""
    lines = (line for line in event.splitlines() if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)


def data_event(value: object) -> bytes:
    """A ``data:`` event with the value as JSON."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def error_event(error: MemloopError) -> bytes:
    """An ``error`` event with the OpenAI-shaped body: how a stream that has begun reports a failure."""
    return b"event: error\n" + data_event(error.envelope().model_dump())


class EventStream(Response):
    """Streams events from a generator.

    Sends a comment when the stream is quiet for ``heartbeat_s`` seconds. When the client leaves, the generator is
    closed at once, whatever it waits for, and ``on_abandoned`` is called. ``owns`` is closed at the end in any case.
    The generator must yield whole events only, so that a heartbeat never lands inside one.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        *,
        heartbeat_s: float,
        owns: AsyncExitStack | None = None,
        on_abandoned: Callable[[], None] | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._source = source
        self._heartbeat_s = heartbeat_s
        self._owns = owns or AsyncExitStack()
        self._on_abandoned = on_abandoned
        self._last_sent = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pulse = _Pulse(send, every_s=self._heartbeat_s)
        async with self._owns, aclosing(self._source):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                async with stop_when_gone(receive), pulse:
                    async for events in self._source:
                        await send({"type": "http.response.body", "body": events, "more_body": True})
                        pulse.sent()
            except ClientGone:
                if self._on_abandoned is not None:
                    self._on_abandoned()
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Pulse:
    """Sends a comment whenever nothing was sent for ``every_s`` seconds. What is sent only moves a mark in time."""

    def __init__(self, send: Send, *, every_s: float) -> None:
        self._send = send
        self._every_s = every_s
        self._loop = asyncio.get_running_loop()
        self._last_sent = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._beat: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._timer = self._loop.call_later(self._every_s, self._look)

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait({self._beat})

    def sent(self) -> None:
        """Something else went out."""
        self._last_sent = self._loop.time()

    def _look(self) -> None:
        if self._loop.time() - self._last_sent >= self._every_s:
            if self._beat is None or self._beat.done():  # one that the client has not taken yet is enough
                self._beat = self._loop.create_task(self._send_beat())
            self.sent()
        self._timer = self._loop.call_at(self._last_sent + self._every_s, self._look)

    async def _send_beat(self) -> None:
        await self._send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
