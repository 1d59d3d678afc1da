"""The HTTP client against peers that are slow, silent, gone, or cannot stop."""

import asyncio

import pytest

from memloop.wire.errors import ConnectRefused, Timeout, Unavailable, Unreachable
from memloop_clients import Timeouts
from tests.fakes.odd_peer import OddPeer, Script, answering, odd_peer
from tests.fakes.processes import PATIENCE_S
from tests.memloop.http1_rig import CHUNKED, OK, client, peer_and_client

SILENT = {"before the answer": [b""], "in the body": [CHUNKED, b"2\r\nok\r\n"], "in the headers": [b"HTTP/1.1 200"]}


@pytest.mark.parametrize("pieces", SILENT.values(), ids=SILENT)
async def test_a_silent_peer_is_a_timeout_and_its_connection_closes(pieces: list[bytes]) -> None:
    limits = Timeouts(read_s=0.5)
    async with peer_and_client(answering(*pieces), timeouts=limits) as (peer, http):
        with pytest.raises(Timeout):
            await http.json("POST", "x", body=1)
        await asyncio.wait_for(peer.left.wait(), PATIENCE_S)


async def test_a_slow_peer_that_goes_on_is_no_silent_one() -> None:
    pieces = [CHUNKED, *[b"1\r\nx\r\n"] * 5, b"0\r\n\r\n"]
    limits = Timeouts(read_s=4.0)
    async with peer_and_client(answering(*pieces, pause_s=0.75), timeouts=limits) as (_, http):
        assert await http.json("GET", "x") == b"xxxxx"


async def test_a_whole_call_has_a_limit_of_its_own() -> None:
    pieces = [CHUNKED, *[b"1\r\nx\r\n"] * 100]
    limits = Timeouts(read_s=1.0, total_s=0.1)
    async with peer_and_client(answering(*pieces, pause_s=0.01), timeouts=limits) as (peer, http):
        with pytest.raises(Timeout):
            await http.json("GET", "x")
        await asyncio.wait_for(peer.left.wait(), PATIENCE_S)


async def test_nobody_there_is_refused_and_a_name_that_is_none_too() -> None:
    async with odd_peer(answering(OK)) as peer:
        pass
    for url in (peer.url, "http://no-such-host.invalid"):
        async with client(url) as http:
            with pytest.raises(ConnectRefused):
                await http.json("GET", "x")


async def test_a_connection_that_does_not_come_about_in_time_is_unreachable() -> None:
    limits = Timeouts(connect_s=0.5)
    async with (
        odd_peer(answering(OK)) as peer,
        client(peer.url.replace("http:", "https:"), timeouts=limits) as http,
    ):
        with pytest.raises(Unreachable) as caught:  # it takes the connection, and never shakes hands
            await http.json("GET", "x")
        assert type(caught.value) is Unreachable


def closing_after_the_first() -> Script:
    """The first connection takes a second request and hangs up without an answer; later ones answer."""

    async def serve(peer: OddPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = peer.connections == 1
        while True:
            await peer.next_request(reader)
            if first and len(peer.requests) == 2:
                return
            writer.write(OK)

    return serve


@pytest.mark.parametrize(("method", "repeated"), [("GET", True), ("DELETE", True), ("POST", False), ("PATCH", False)])
async def test_a_kept_connection_that_died_is_replaced_only_where_repeating_is_harmless(
    method: str, repeated: bool
) -> None:
    async with peer_and_client(closing_after_the_first()) as (peer, http):
        await http.json(method, "x")
        if repeated:
            assert await http.json(method, "x") == b"ok"
        else:
            with pytest.raises(Unavailable):
                await http.json(method, "x")
        assert len(peer.requests) == (3 if repeated else 2)


async def test_unrequested_bytes_end_the_connection() -> None:
    async with peer_and_client(answering(OK + OK)) as (peer, http):
        assert [await http.json("GET", "x") for _ in range(2)] == [b"ok"] * 2
        assert peer.connections == 2


async def test_leaving_an_answer_early_hangs_up() -> None:
    async with peer_and_client(answering(CHUNKED, b"2\r\nok\r\n")) as (peer, http):
        async with http.open("POST", "x", body=b"{}") as response:
            assert await response.some() == b"ok"
        await asyncio.wait_for(peer.left.wait(), PATIENCE_S)
        assert await response.some() == b""


async def test_a_cancelled_call_hangs_up() -> None:
    async with peer_and_client(answering(b""), timeouts=Timeouts()) as (peer, http):
        call = asyncio.create_task(http.json("POST", "x", body=1))
        await asyncio.wait_for(peer.asked.wait(), PATIENCE_S)
        call.cancel()
        await asyncio.wait_for(peer.left.wait(), PATIENCE_S)


def flooding(sent: list[int]) -> Script:
    """Sends chunks for as long as they are taken, and counts them."""

    async def serve(peer: OddPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await peer.next_request(reader)
        writer.write(CHUNKED)
        for _ in range(400):
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()
            sent[0] += 65_536
        writer.write(b"0\r\n\r\n")

    return serve


async def test_a_body_without_a_reader_is_not_read_and_arrives_whole_later() -> None:
    sent = [0]
    limits = Timeouts(read_s=2.0)
    async with peer_and_client(flooding(sent), timeouts=limits) as (_, http), http.open("GET", "x") as response:
        before = -1
        while sent[0] != before:  # until the peer is held up
            before = sent[0]
            await asyncio.sleep(2.4)  # longer than a silence may be: waiting for us is no silence of the peer
        assert sent[0] < 400 * 65_536 / 2
        assert sum([len(chunk) async for chunk in response.chunks()]) == 400 * 65_536


async def test_idle_connections_are_closed_when_the_client_is() -> None:
    async with odd_peer(answering(OK)) as peer:
        async with client(peer.url) as http:
            await http.json("GET", "x")
        await asyncio.wait_for(peer.left.wait(), PATIENCE_S)
