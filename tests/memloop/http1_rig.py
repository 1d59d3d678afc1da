"""The HTTP client beside a peer that a test scripts, on asyncio's loop or uvloop's."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeAlias

from memloop.clients import Timeouts
from memloop.clients.http import Http
from memloop.wire.errors import MemloopError
from tests.fakes.odd_peer import OddPeer, Script, odd_peer

Scenario: TypeAlias = Callable[[], Coroutine[None, None, None]]
Run: TypeAlias = Callable[[Scenario], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Twice: a\r\nx-twice: b\r\n\r\n"
QUICK = Timeouts(connect_s=0.5, read_s=0.5, total_s=60.0)


def client(url: str, *, timeouts: Timeouts = QUICK) -> Http:
    return Http(url, peer="peer", error_of=refused, headers={"X-Key": "k"}, timeouts=timeouts)


def refused(status: int, raw: bytes, _: object) -> MemloopError:
    return MemloopError(f"{status} {raw.decode()}")


@asynccontextmanager
async def peer_and_client(script: Script, *, timeouts: Timeouts = QUICK) -> AsyncGenerator[tuple[OddPeer, Http]]:
    async with odd_peer(script) as peer, client(peer.url, timeouts=timeouts) as http:
        yield peer, http
