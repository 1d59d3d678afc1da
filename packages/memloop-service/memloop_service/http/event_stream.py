"""A response of server-sent events: it stays alive while they are quiet, and ends when the client leaves.

Source of the format: WHATWG HTML, "Server-sent events".
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, Self, TypeAlias

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memloop.wire.errors import MemloopError
from memloop_service.errors import api_style
from memloop_service.http.admission import Awaited, ClientGone

DONE = b"data: [DONE]\n\n"
HEARTBEAT = b": keep-alive\n\n"


def data_event(json: bytes, *, kind: str = "", event_id: str = "") -> bytes:
    """Return an event with that JSON, of the type ``kind`` if it has one."""
    named, numbered = f"event: {kind}\n" if kind else "", f"id: {event_id}\n" if event_id else ""
    return b"%bdata: %b\n\n" % ((named + numbered).encode(), json)


def error_event(error: MemloopError) -> bytes:
    """Return an ``error`` event in the style of the request's API: how a stream that has begun reports a failure."""
    return data_event(orjson.dumps(api_style.get().error_body(error)), kind="error")


class Sink(Protocol):
    """Takes events on their way to the client."""

    def send(self, events: bytes) -> Awaitable[None]: ...


class Outlet:
    """Where events go to the client: whole ones only, so that a heartbeat never lands inside one.

    Sends a comment whenever nothing was sent for ``heartbeat_s`` seconds. What is sent only moves a mark in time.
    """

    def __init__(self, send: Send, *, heartbeat_s: float) -> None:
        self._send = send
        self._heartbeat_s = heartbeat_s
        self._loop = asyncio.get_running_loop()
        self._last_sent = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._beat: asyncio.Future[None] | None = None

    def send(self, events: bytes) -> Awaitable[None]:
        """Send events. Await the result: it comes when the client's connection has room for more."""
        self._last_sent = self._loop.time()
        return self._send({"type": "http.response.body", "body": events, "more_body": True})

    async def __aenter__(self) -> Self:
        self._timer = self._loop.call_later(self._heartbeat_s, self._look)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait({self._beat})

    def _look(self) -> None:
        if self._loop.time() - self._last_sent >= self._heartbeat_s:
            if self._beat is None or self._beat.done():  # one that the client has not taken yet is enough
                self._beat = asyncio.ensure_future(self.send(HEARTBEAT))
            self._last_sent = self._loop.time()
        self._timer = self._loop.call_at(self._last_sent + self._heartbeat_s, self._look)


Source: TypeAlias = Callable[[Outlet], Coroutine[Any, Any, None]]
"""Sends events until there are no more."""


class EventStream(Response):
    """Streams the events of a source.

    When the client leaves, the source is cancelled at once, whatever it waits for, and ``on_abandoned`` is called.
    ``owns`` is closed at the end in any case.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        source: Source,
        *,
        heartbeat_s: float,
        owns: AbstractContextManager[object] | None = None,
        on_abandoned: Callable[[], None] | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})
        self._source = source
        self._heartbeat_s = heartbeat_s
        self._owns = owns or nullcontext()
        self._on_abandoned = on_abandoned

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._owns:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                outlet = Outlet(send, heartbeat_s=self._heartbeat_s)
                async with Awaited(receive), outlet:
                    await asyncio.create_task(self._source(outlet))
            except ClientGone:
                if self._on_abandoned is not None:
                    self._on_abandoned()
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
