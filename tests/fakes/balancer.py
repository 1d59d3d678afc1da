"""A TCP balancer that looks at readiness, as a Kubernetes Service does: new connections go to ready servers, one after
another; connections that are there stay where they are, and end as their server ends them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp

from tests.fakes.tcp import joined

_LOOK_EVERY_S = 0.1


@dataclass
class Balancer:
    """``ports`` of the servers on the loopback; ``ready`` of them as seen at the last look."""

    ports: Sequence[int]
    ready: list[int] = field(default_factory=list[int])
    url: str = ""
    _next: int = 0

    async def look(self) -> None:
        """Ask all servers whether they are ready."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as http:
            states = await asyncio.gather(*(_is_ready(http, port) for port in self.ports))
        self.ready = [port for port, ready in zip(self.ports, states, strict=True) if ready]

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, to its end."""
        self._next += 1
        try:
            with suppress(OSError):
                if self.ready:
                    await joined(reader, writer, self.ready[self._next % len(self.ready)])
        finally:
            writer.close()


@asynccontextmanager
async def balanced(ports: Sequence[int]) -> AsyncGenerator[Balancer]:
    """A running balancer that has looked once."""
    balancer = Balancer(ports)
    await balancer.look()
    watching = asyncio.create_task(balancer.watch())
    server = await asyncio.start_server(balancer.serve, "127.0.0.1", 0)
    balancer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield balancer
    finally:
        watching.cancel()
        server.close()


async def _is_ready(http: aiohttp.ClientSession, port: int) -> bool:
    with suppress(aiohttp.ClientError, TimeoutError):
        async with http.get(f"http://127.0.0.1:{port}/readyz", headers={"Connection": "close"}) as answer:
            return answer.status == 200
    return False
