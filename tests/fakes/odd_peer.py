"""A peer on a real port that answers with the very bytes that a test gives it, when the test says so."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

Script: TypeAlias = "Callable[[OddPeer, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]"


@dataclass
class OddPeer:
    """What came in: each request's bytes, how many connections, and how many of them the client has closed."""

    url: str = ""
    requests: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def next_request(self, reader: asyncio.StreamReader) -> bytes:
        """One whole request, kept in ``requests``. Raises IncompleteReadError when the client has left."""
        head = await reader.readuntil(b"\r\n\r\n")
        sizes = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        request = head + await reader.readexactly(int(sizes[0]) if sizes else 0)
        self.requests.append(request)
        self.asked.set()
        return request


def answering(*pieces: bytes, then_close: bool = False, pause_s: float = 0.0) -> Script:
    """Every request gets these pieces, each in a write of its own."""

    async def answer(peer: OddPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await peer.next_request(reader)
            for piece in pieces:
                if writer.is_closing():  # uvloop's write would raise a RuntimeError
                    raise ConnectionResetError
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause_s)
            if then_close:
                return

    return answer


@asynccontextmanager
async def odd_peer(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[OddPeer]:
    """The running peer; ``script`` has each connection to itself."""
    peer = OddPeer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        try:
            await script(peer, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):  # the last: the test has ended
            peer.left.set()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    peer.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield peer
    finally:
        server.close()
