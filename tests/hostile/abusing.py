"""What every abuser uses: HTTP requests and bare sockets with a tenant's key, each by the hundred, and their count."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import aiohttp
import orjson

from tests.gateway.api_rig import ALICE_KEY

_PAUSE_S: Final = 0.05
"""Between a refusal and the next try: an abuser that only spins takes the machine, not the gateway."""
_SMALL_BUFFER: Final = 4096
Link: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Abuse:
    """One abuser's connections, and how its requests ended: by status, or by the name of an exception."""

    url: str
    http: aiohttp.ClientSession
    ended: Counter[str] = field(default_factory=Counter[str])

    async def many(self, number: int, once: Callable[[], Awaitable[object]]) -> None:
        """So many that do it again and again."""
        await asyncio.gather(*(self._again(once) for _ in range(number)))

    async def post(self, path: str, body: object, **headers: str) -> bytes:
        """POST JSON, or bytes as they are; the answer's body, empty when it was refused."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return await self.send("POST", path, data=raw, headers={"Content-Type": "application/json"} | headers)

    async def send(self, method: str, path: str, **how: Any) -> bytes:
        """Any request."""
        async with self.http.request(method, self.url + path, **how) as answer:
            self.ended[str(answer.status)] += 1
            raw = await answer.read()
            if answer.status >= 400:
                await asyncio.sleep(_PAUSE_S)
            return raw if answer.status < 400 else b""

    async def socket(
        self, path: str, *, announced: int, body: bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection with a small receive buffer that has sent the head of a request and some of its body."""
        bare = socket.socket()
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        bare.setblocking(False)
        address = urlsplit(self.url)
        await asyncio.get_running_loop().sock_connect(bare, (address.hostname, address.port))
        reader, writer = await asyncio.open_connection(sock=bare, limit=_SMALL_BUFFER)
        lines = (f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {ALICE_KEY}")
        lines += ("Content-Type: application/json", f"Content-Length: {announced}", "", "")
        writer.write("\r\n".join(lines).encode() + body)
        self.ended["sockets"] += 1
        return reader, writer

    async def _again(self, once: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await once()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self.ended[type(error).__name__] += 1
                await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def abusing(url: str) -> AsyncGenerator[Abuse]:
    """An abuser of one tenant without a limit of connections."""
    connector = aiohttp.TCPConnector(limit=0)
    headers, timeout = {"Authorization": f"Bearer {ALICE_KEY}"}, aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as http:
        yield Abuse(url, http)
