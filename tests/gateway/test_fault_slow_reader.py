"""A client that asks for a flood and never reads: the gateway's memory stays as it is, and the client is dropped.

The gateway is a process of its own here, on the socket that operators get; the engine sends as fast as it is read.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.fakes.odd_peer import OddPeer, odd_peer
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S, clean_environment, signalled
from tests.gateway.rig import eventually

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the kernel of Linux watches writes")
_EVENT = b"data: " + b"x" * 16_000 + b"\n\n"
_CLIENTS = 24
_MOST_BYTES_EACH = 1_500_000
_MOST_UNSENT_BYTES_EACH = 300_000
_ASK = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "x"}]}'
_HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


class Flood:
    """An engine whose stream has no end; ``sent_bytes`` counts what was taken, ``stopped`` those who left."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self.stopped = 0

    async def __call__(self, peer: OddPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not (await peer.next_request(reader)).startswith(b"POST "):
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            while True:
                writer.write(_EVENT)
                await writer.drain()
                self.sent_bytes += len(_EVENT)
        finally:
            self.stopped += 1


@asynccontextmanager
async def gateway_process(engine_url: str, redis_url: str) -> AsyncGenerator[tuple[int, int]]:
    """A gateway that drops a client after a second without reading: its port and its process."""
    port = free_port()
    settings = {"PORT": str(port), "ENGINE_URL": f"{engine_url}/v1", "REDIS_URL": redis_url, "MODEL": "m"}
    settings |= {"WRITE_TIMEOUT_S": "1"}
    environment = clean_environment(**{f"MEMLOOP_{name}": value for name, value in settings.items()})
    command = (sys.executable, "-m", "gateway.main")
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL)
    try:
        await eventually(lambda: _listens(port), timeout_s=PATIENCE_S)
        yield port, process.pid
    finally:
        await signalled(process, signal.SIGTERM)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _client(port: int) -> socket.socket:
    """A connection whose own buffer takes next to nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    return client


def _rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _unsent_bytes(port: int) -> int:
    """What the kernel holds for those who are connected to a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].partition(":")[0], 16) for row in rows if row[1].endswith(f":{port:04X}"))


async def _metric(port: int, name: str) -> float:
    async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/metrics") as response:
        lines = (await response.text()).splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0.0)


async def test_memory_stays_and_the_client_is_dropped(redis_url: str) -> None:
    flood = Flood()
    async with odd_peer(flood) as engine, gateway_process(engine.url, redis_url) as (port, pid):
        await _metric(port, "warm")
        before = _rss_bytes(pid)
        clients = [_client(port) for _ in range(_CLIENTS)]
        for client in clients:
            client.sendall(_HEAD % len(_ASK) + _ASK)

        unsent = list[int]()

        def stopped() -> bool:
            unsent.append(_unsent_bytes(port))
            return flood.stopped == len(clients)

        await eventually(stopped, timeout_s=PATIENCE_S)
        assert max(unsent) < _MOST_UNSENT_BYTES_EACH * len(clients)
        assert _rss_bytes(pid) - before < _MOST_BYTES_EACH * len(clients)
        assert flood.sent_bytes > len(clients) * 1_000_000  # it did flow until nobody read

        async def all_counted() -> bool:
            return await _metric(port, "upstream_abort_total") == len(clients)

        await eventually(all_counted)
        for client in clients:
            client.close()
