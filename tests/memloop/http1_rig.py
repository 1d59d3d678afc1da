"""The HTTP client beside a peer that a test scripts."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from memloop.wire.errors import MemloopError
from memloop_clients import Balancing, Timeouts
from memloop_clients.http import Http
from tests.fakes.authority import Authority
from tests.fakes.odd_peer import OddPeer, Script, odd_peer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Once: a\r\n\r\n"
PATIENT = Timeouts(connect_s=60.0, read_s=60.0, total_s=120.0)


def client(url: str, *, timeouts: Timeouts = PATIENT, balancing: Balancing | None = None) -> Http:
    headers = {"X-Key": "k"}
    return Http(url, peer="peer", error_of=refused, headers=headers, timeouts=timeouts, balancing=balancing)


def refused(status: int, raw: bytes, _: object) -> MemloopError:
    return MemloopError(f"{status} {raw.decode()}")


@asynccontextmanager
async def peer_and_client(script: Script, *, timeouts: Timeouts = PATIENT) -> AsyncGenerator[tuple[OddPeer, Http]]:
    async with odd_peer(script) as peer, client(peer.url, timeouts=timeouts) as http:
        yield peer, http


def certified(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """The context of a server for 127.0.0.1 and engine.test, and the file of the authority that signed for it."""
    authority = Authority(folder)
    return authority.of_server(authority.issue("engine.test")), authority.file
