"""A response of server-sent events: it stays alive while they are quiet, and ends when the client leaves.

Most events need no task: whoever has them offers them to the client's connection, and only a client that reads more
slowly than they come is waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack
from typing import Self, TypeAlias, cast

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from gateway.http.disconnect import ClientGone, StopWhenGone
from gateway.http.sse import HEARTBEAT
from memloop_service import BODY_SEND

Steps: TypeAlias = Generator[object, None, None]
"""A coroutine that runs step by step; what a step yields is what it waits for."""


class Outlet:
    """Where events go to the client: whole ones only, so that a heartbeat never lands inside one.

    Sends a comment whenever nothing was sent for ``heartbeat_s`` seconds. What is sent only moves a mark in time.
    """

    def __init__(self, send: Send, *, heartbeat_s: float) -> None:
        self._send = send
        self._heartbeat_s = heartbeat_s
        self._loop = asyncio.get_running_loop()
        self._last_sent = self._loop.time()
        self._begun: Awaitable[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._beat: asyncio.Task[None] | None = None

    async def send(self, events: bytes) -> None:
        """Send events; returns when the client's connection has room for more."""
        await self._send({"type": "http.response.body", "body": events, "more_body": True})
        self._last_sent = self._loop.time()

    def offer(self, events: bytes) -> bool:
        """Send events from a callback. False when the client is slow: await ``taken`` before anything else is sent."""
        message: Message = {"type": "http.response.body", "body": events, "more_body": True}
        sending = cast(Steps, self._send(message).__await__())
        self._last_sent = self._loop.time()
        try:
            waits_for = next(sending)
        except StopIteration:
            return True
        self._begun = _Begun(waits_for, sending)
        return False

    async def taken(self) -> None:
        """Returns when the client's connection has taken what it was slow to take."""
        begun, self._begun = self._begun, None
        if begun is not None:
            await begun
            self._last_sent = self._loop.time()

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
                self._beat = self._loop.create_task(self.send(HEARTBEAT))
            self._last_sent = self._loop.time()
        self._timer = self._loop.call_at(self._last_sent + self._heartbeat_s, self._look)


class _Begun:
    """The rest of a coroutine whose first step was run outside of a task, for the task that runs the others."""

    def __init__(self, waits_for: object, steps: Steps) -> None:
        self._waits_for = waits_for
        self._steps = steps

    def __await__(self) -> Steps:
        try:
            yield self._waits_for
            yield from self._steps
        finally:
            self._steps.close()


Source: TypeAlias = Callable[[Outlet], Awaitable[None]]
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
        owns: ExitStack | None = None,
        on_abandoned: Callable[[], None] | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._source = source
        self._heartbeat_s = heartbeat_s
        self._owns = owns or ExitStack()
        self._on_abandoned = on_abandoned

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        with self._owns:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                with StopWhenGone(receive):
                    async with Outlet(scope.get(BODY_SEND, send), heartbeat_s=self._heartbeat_s) as outlet:
                        await self._source(outlet)
            except ClientGone:
                if self._on_abandoned is not None:
                    self._on_abandoned()
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
