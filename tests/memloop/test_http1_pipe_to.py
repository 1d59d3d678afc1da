"""A body that is piped to a taker as it comes, held up when its taker wants a pause. Each test runs on both loops."""

import asyncio

import pytest

from memloop.clients import Timeouts
from memloop.wire.errors import Timeout, Unavailable
from tests.fakes.odd_peer import answering
from tests.fakes.processes import PATIENCE_S
from tests.memloop.http1_rig import CHUNKED, OK, Run, peer_and_client
from tests.memloop.test_http1_peers import flooding

PIECES = [CHUNKED, *[b"2\r\nok\r\n"] * 3, b"0\r\n\r\n"]
_FLOOD_BYTES = 400 * 65_536


class Taker:
    """Keeps what it is given, and asks for a pause after each piece if it is slow."""

    def __init__(self, *, slow: bool = False) -> None:
        self.given: list[bytes] = []
        self._slow = slow

    def __call__(self, data: bytes) -> bool:
        self.given.append(data)
        return not self._slow


@pytest.mark.parametrize("pieces", [PIECES, [b"".join(PIECES)], [OK]], ids=["apart", "together", "with its length"])
def test_a_body_is_piped_whole_and_its_connection_kept(run: Run, pieces: list[bytes]) -> None:
    async def scenario() -> None:
        async with peer_and_client(answering(*pieces, pause_s=0.01)) as (peer, http):
            for _ in range(2):
                taker = Taker()
                async with http.open("GET", "x") as response:
                    assert not await response.pipe_to(taker)
                assert b"".join(taker.given) == (b"ok" if pieces == [OK] else b"okokok")
            assert peer.connections == 1

    run(scenario)


def test_a_body_that_ends_with_its_connection_is_piped_whole(run: Run) -> None:
    async def scenario() -> None:
        script = answering(b"HTTP/1.1 200 OK\r\n\r\n", b"ok", then_close=True, pause_s=0.01)
        async with peer_and_client(script) as (_, http), http.open("GET", "x") as response:
            taker = Taker()
            assert not await response.pipe_to(taker)
            assert taker.given == [b"ok"]

    run(scenario)


def test_after_a_pause_the_rest_is_piped(run: Run) -> None:
    async def scenario() -> None:
        async with peer_and_client(answering(*PIECES, pause_s=0.02)) as (_, http), http.open("GET", "x") as response:
            taker = Taker(slow=True)
            while await response.pipe_to(taker):
                given = len(taker.given)
                await asyncio.sleep(0.03)
                assert len(taker.given) == given
            assert b"".join(taker.given) == b"okokok"

    run(scenario)


def test_a_taker_that_pauses_holds_the_peer_up_and_loses_nothing(run: Run) -> None:
    async def scenario() -> None:
        sent = [0]
        limits = Timeouts(read_s=0.3)
        async with peer_and_client(flooding(sent), timeouts=limits) as (_, http), http.open("GET", "x") as response:
            taker = Taker(slow=True)
            assert await response.pipe_to(taker)
            await asyncio.sleep(0.4)  # longer than a silence may be: waiting for us is no silence of the peer
            assert sent[0] < _FLOOD_BYTES / 2
            while await response.pipe_to(taker):
                pass
            assert sum(map(len, taker.given)) == _FLOOD_BYTES

    run(scenario)


def test_what_came_before_the_connection_was_lost_is_given(run: Run) -> None:
    async def scenario() -> None:
        script = answering(CHUNKED, b"2\r\nok\r\n", b"2\r\nok\r\nno chunk", then_close=True, pause_s=0.02)
        async with peer_and_client(script) as (_, http), http.open("GET", "x") as response:
            taker = Taker()
            with pytest.raises(Unavailable):
                await response.pipe_to(taker)
            assert b"".join(taker.given) == b"okok"

    run(scenario)


def test_silence_counts_from_the_last_bytes(run: Run) -> None:
    async def scenario() -> None:
        pieces = [CHUNKED, *[b"1\r\nx\r\n"] * 5]
        limits = Timeouts(read_s=1.0)
        async with (
            peer_and_client(answering(*pieces, pause_s=0.25), timeouts=limits) as (peer, http),
            http.open("GET", "x") as response,
        ):
            taker = Taker()
            with pytest.raises(Timeout):
                await response.pipe_to(taker)
            assert b"".join(taker.given) == b"xxxxx"
            await asyncio.wait_for(peer.left.wait(), PATIENCE_S)

    run(scenario)


def test_a_cancelled_pipe_gives_nothing_more_and_hangs_up(run: Run) -> None:
    async def scenario() -> None:
        pieces = [CHUNKED, *[b"1\r\nx\r\n"] * 100]
        async with peer_and_client(answering(*pieces, pause_s=0.01)) as (peer, http):
            taker = Taker()
            async with http.open("GET", "x") as response:
                piping = asyncio.create_task(response.pipe_to(taker))
                await asyncio.sleep(0.05)
                piping.cancel()
                await asyncio.wait({piping})
            given = len(taker.given)
            await asyncio.wait_for(peer.left.wait(), PATIENCE_S)
            assert 0 < len(taker.given) == given

    run(scenario)


def test_a_taker_at_fault_loses_its_connection_and_nobody_waits_for_ever(run: Run) -> None:
    def broken(_: bytes) -> bool:
        raise ZeroDivisionError

    def quiet(_: asyncio.AbstractEventLoop, report: dict[str, object]) -> None:
        reported.append(report["exception"])

    reported: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(quiet)
        async with peer_and_client(answering(*PIECES, pause_s=0.02)) as (peer, http):
            async with http.open("GET", "x") as response:
                with pytest.raises(Unavailable):
                    await response.pipe_to(broken)
            await asyncio.wait_for(peer.left.wait(), PATIENCE_S)
            assert [type(fault) for fault in reported] == [ZeroDivisionError]

    run(scenario)
