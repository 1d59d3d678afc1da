"""Lets requests begin a few at a time, callers in turn, so that a burst of one caller does not delay the others.

The event loop runs whatever is ready before it looks at the network again. When a caller sends 500 requests at once,
all of them begin in one turn of the loop, and again in each turn in which they have something to do. Another caller's
chat, which takes a dozen turns, then waits a dozen times for all of them. With few beginnings per turn, a turn is as
short as these. Callers take turns as tenants do in the queues (docs/decisions/0047-tenants-take-turns.md).

More turns for the same work cost processor time, so a caller that is alone begins as much as it likes.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from memloop_service.waiting_line import WaitingLine

_MOST: Final = 4
_SHARED_S: Final = 10.0
_CREDENTIALS: Final = (b"authorization", b"x-api-key")


class FairStart:
    """ASGI middleware. A request waits only if ``_MOST`` have begun in the same turn of the event loop.

    And only if another caller has sent a request within the last ten seconds. A caller is whoever sends the same
    credentials, whether or not they are valid.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._begun = 0
        self._line = WaitingLine[bytes]()
        self._newest = b""
        self._shared_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI call."""
        if scope["type"] == "http":
            await self._turn(_caller(scope["headers"]))
        await self._app(scope, receive, send)

    async def _turn(self, caller: bytes) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if caller != self._newest:
            self._newest, self._shared_until = caller, now + _SHARED_S
        if now > self._shared_until and not self._line:
            return
        if not self._begun:
            loop.call_soon(self._next)
        if self._begun < _MOST and not self._line:
            self._begun += 1
            return
        await self._line.join(caller)

    def _next(self) -> None:
        """Let the next requests begin, each of the caller who has waited longest for a turn."""
        self._begun = 0
        while self._begun < _MOST and self._line.release():
            self._begun += 1
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next)


def _caller(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    for name, value in headers:
        if name in _CREDENTIALS:
            return value
    return b""
