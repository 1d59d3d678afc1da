"""Replicas of one server at addresses of the loopback, which share a port, and a resolver of their name."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from memloop_clients import Balancing
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.fakes.web_server import serving

ADDRESSES: Final = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
NAME: Final = "engine.test"
_PACE_S: Final = 0.02


@dataclass
class Replica:
    """One replica. While ``holding`` is unset its answers begin and do not end; ``drops`` closes connections."""

    address: str
    port: int
    takes_work: bool = True
    drops: bool = False
    requests: int = 0
    running: int = 0
    bodies: list[bytes] = field(default_factory=list[bytes])
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    async def start(self) -> None:
        routes = [web.get("/health", self._health), web.route("*", "/v1/{path:.*}", self._answer)]
        await self._stack.enter_async_context(serving(routes, host=self.address, port=self.port))

    async def stop(self) -> None:
        """Be gone, with every connection."""
        await self._stack.aclose()

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self.takes_work else 503)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        self.bodies.append(await request.read())
        if self.drops and request.transport is not None:
            request.transport.abort()
        self.running += 1
        try:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"at":')
            await self.holding.wait()
            await response.write(f'"{self.address}"}}'.encode())
            return response
        finally:
            self.running -= 1


@dataclass
class Replicas:
    """All replicas; the name resolves to ``addresses``, and to none with an error."""

    every: Sequence[Replica]
    addresses: list[str]
    unresolved: int = 0
    """How often the name was looked up in vain."""

    @property
    def url(self) -> str:
        """The base URL by name."""
        return f"http://{NAME}:{self.every[0].port}/v1"

    @property
    def requests(self) -> list[int]:
        """What each of them got so far."""
        return [replica.requests for replica in self.every]

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The balancer's resolver."""
        assert (host, port) == (NAME, self.every[0].port)
        if not self.addresses:
            self.unresolved += 1
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return list(self.addresses)

    def rules(self, *, failures: int = 5, open_s: float = 600.0) -> Balancing:
        """Rules with the resolver, at a test's pace."""
        return Balancing(
            resolve=self.resolve,
            resolve_every_s=_PACE_S,
            examine_every_s=_PACE_S,
            examine_s=PATIENCE_S,
            failures=failures,
            open_s=open_s,
        )


@asynccontextmanager
async def replicas(count: int = 3) -> AsyncGenerator[Replicas]:
    """So many running replicas, all of them resolved."""
    port = free_port()
    every = [Replica(address, port) for address in ADDRESSES[:count]]
    for replica in every:
        replica.holding.set()
        await replica.start()
    try:
        yield Replicas(every, [replica.address for replica in every])
    finally:
        for replica in every:
            replica.holding.set()
            await replica.stop()
