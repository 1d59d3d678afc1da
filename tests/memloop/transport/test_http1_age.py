"""Connections do not stay with one server for ever: they age, and one whose server took no work is left."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from memloop.wire.errors import MemloopError
from memloop_clients import Timeouts
from memloop_clients.http import Http
from tests.fakes.odd_peer import OddPeer, Script, answering
from tests.memloop.http1_rig import peer_and_client

AGING = Timeouts(connect_s=60.0, read_s=60.0, total_s=120.0, connection_age_s=0.1)


def balancing(ready: Sequence[bytes]) -> Script:
    """Gives each connection to the next server that is ready when it comes, for as long as it lasts."""

    async def serve(peer: OddPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = ready[peer.connections % len(ready)]
        while True:
            await peer.next_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + server)

    return serve


async def load(http: Http, *, for_s: float) -> Counter[bytes]:
    """Which servers answered four steady callers."""
    answers: Counter[bytes] = Counter()
    until = time.monotonic() + for_s

    async def caller() -> None:
        while time.monotonic() < until:
            answers[await http.json("POST", "x", body=1)] += 1
            await asyncio.sleep(0.005)

    await asyncio.gather(*(caller() for _ in range(4)))
    return answers


async def test_a_new_server_gets_its_share_and_one_that_left_gets_nothing() -> None:
    ready = [b"a"]
    async with peer_and_client(balancing(ready), timeouts=AGING) as (_, http):
        assert set(await load(http, for_s=0.2)) == {b"a"}
        ready.append(b"b")
        await load(http, for_s=0.3)
        shared = await load(http, for_s=1.5)
        assert shared[b"b"] > shared.total() / 5
        ready.remove(b"a")
        await load(http, for_s=0.3)
        assert set(await load(http, for_s=0.2)) == {b"b"}


async def test_a_long_answer_outlives_its_connections_age() -> None:
    pieces = [b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", *[b"x"] * 8]
    async with peer_and_client(answering(*pieces, pause_s=0.05), timeouts=AGING) as (peer, http):
        assert [await http.json("POST", "x", body=1) for _ in range(2)] == [b"x" * 8] * 2
        assert peer.connections == 2


async def test_a_connection_whose_server_takes_no_work_is_not_used_again() -> None:
    busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno"
    async with peer_and_client(answering(busy), timeouts=Timeouts()) as (peer, http):
        for _ in range(2):
            with pytest.raises(MemloopError, match="503 no"):
                await http.json("POST", "x", body=1)
        assert peer.connections == 2
