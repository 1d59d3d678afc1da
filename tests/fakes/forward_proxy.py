"""A forward proxy on a real port: tunnels for CONNECT, and requests with a whole URL. Every host is this machine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from yarl import URL

_BLOCK = 1 << 16


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
            port = int(target.rpartition(b":")[2]) if method == b"CONNECT" else URL(target.decode()).port
            peer_reader, peer_writer = await asyncio.open_connection("127.0.0.1", port)
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                peer_writer.write(head)
            both = {
                asyncio.create_task(_pass_on(reader, peer_writer)),
                asyncio.create_task(_pass_on(peer_reader, writer)),
            }
            _, left = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
            peer_writer.close()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while block := await reader.read(_BLOCK):
        writer.write(block)
        await writer.drain()


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
