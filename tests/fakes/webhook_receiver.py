"""A receiver of webhooks, as a client would write it: it verifies every message with the standard's own library."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook

from tests.fakes.web_server import serving


@dataclass
class Receiver:
    """Answers with ``statuses`` in order, then with 204. With ``holding`` it keeps the sender waiting."""

    secret: str
    url: str = ""
    statuses: list[int] = field(default_factory=list[int])
    messages: list[Any] = field(default_factory=list[Any])
    ids: list[str] = field(default_factory=list[str])
    hosts: list[str] = field(default_factory=list[str])
    redirected: int = 0
    holding: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: web.Request) -> web.Response:
        """Verify the message, and answer."""
        body = await request.read()
        self.messages.append(Webhook(self.secret).verify(body, dict(request.headers)))
        self.ids.append(request.headers["webhook-id"])
        self.hosts.append(request.host)
        self.reached.set()
        if self.holding:
            await asyncio.Event().wait()
        status = self.statuses.pop(0) if self.statuses else 204
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 307 else {})

    async def elsewhere(self, request: web.Request) -> web.Response:
        """Where a redirect leads."""
        del request
        self.redirected += 1
        return web.Response()


@asynccontextmanager
async def webhook_receiver(secret: str) -> AsyncGenerator[Receiver]:
    """A receiver on a free loopback port."""
    receiver = Receiver(secret)
    async with serving([web.post("/in", receiver.take), web.post("/elsewhere", receiver.elsewhere)]) as base:
        receiver.url = f"{base}/in"
        yield receiver
