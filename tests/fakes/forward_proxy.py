"""A forward proxy on a real port: tunnels for CONNECT, and requests with a whole URL. Every host is this machine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from yarl import URL

from tests.fakes.tcp import joined


@dataclass
class ForwardProxy:
    """``heads``: the request heads that it got, one for a tunnel, and one for each connection without."""

    refuses_with: int | None = None
    port: int = 0
    heads: list[bytes] = field(default_factory=list[bytes])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            method, target = head.split(b" ", 2)[:2]
            if self.refuses_with is not None:
                writer.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % self.refuses_with)
                return
            if method == b"CONNECT":
                established = b"HTTP/1.1 200 Connection established\r\n\r\n"
                await joined(reader, writer, int(target.rpartition(b":")[2]), answers=established)
            else:
                await joined(reader, writer, URL(target.decode()).port or 80, sends=head)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def forward_proxy(*, refuses_with: int | None = None) -> AsyncGenerator[ForwardProxy]:
    """The running proxy."""
    proxy = ForwardProxy(refuses_with)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
