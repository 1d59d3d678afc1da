"""Lets requests begin one at a time, callers in turn, so that a burst of one caller does not delay the others.

The event loop runs whatever is ready before it looks at the network again. When a caller sends 500 requests at once,
all of them begin in one turn of the loop, and again in each turn in which they have something to do. Another caller's
chat, which takes a dozen turns, then waits a dozen times for all of them. With one beginning per turn, a turn is as
short as one request. Callers take turns as tenants do in the queues (docs/decisions/0047-tenants-take-turns.md).

This costs nothing in number of requests: the loop is busy all the time.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

_CREDENTIALS: Final = (b"authorization", b"x-api-key")


class FairStart:
    """ASGI middleware. A request waits only if another one has begun in the same turn of the event loop.

    A caller is whoever sends the same credentials, whether or not they are valid.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._is_taken = False
        self._lines: dict[bytes, deque[asyncio.Future[None]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI call."""
        if scope["type"] == "http":
            await self._turn(scope["headers"])
        await self._app(scope, receive, send)

    async def _turn(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            loop.call_soon(self._next)
            return
        turn = loop.create_future()
        self._lines.setdefault(_caller(headers), deque()).append(turn)
        await turn

    def _next(self) -> None:
        """Let the next request begin: of the caller who has waited longest for a turn."""
        while self._lines:
            caller = next(iter(self._lines))
            line = self._lines.pop(caller)
            turn = line.popleft()
            if line:
                self._lines[caller] = line
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_taken = False


def _caller(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return next((value for name, value in headers if name in _CREDENTIALS), b"")
