"""More commands than connections: each waits its turn, for a bounded time, and none loses a connection."""

import asyncio
import time

import pytest
from redis.asyncio import Redis

from memloop.wire.errors import Unavailable
from memloop_state.connecting import connect
from memloop_state.link import redis_errors
from tests.fakes.processes import PATIENCE_S

MOST = 4


def few_connections(redis_url: str, wait_s: float) -> Redis:
    return connect(f"{redis_url}?max_connections={MOST}", connect_timeout_s=30.0, read_timeout_s=wait_s)


async def hold(redis: Redis, seconds: float) -> None:
    """Take a connection for so long."""
    await redis.blpop(["nothing"], timeout=seconds)  # pyright: ignore


async def _set(redis: Redis, number: int) -> bool:
    return bool(await redis.set("key", number))


@pytest.mark.parametrize(
    "url", ["redis://:sEcReT/x@host:6379/0", "redis+cluster://:sEcReT/x@host:1,b:2", "redis://host:sEcReT/0"]
)
def test_a_url_without_a_valid_port_shows_no_password(url: str) -> None:
    with pytest.raises(ValueError, match="no valid port") as refused:
        connect(url)
    assert "sEcReT" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


async def test_a_burst_waits_for_connections_and_all_of_it_succeeds(redis_url: str) -> None:
    async with few_connections(redis_url, 30.0) as redis:
        replies = await asyncio.gather(*(redis.set(f"key{number}", number) for number in range(50 * MOST)))
    assert all(replies)


async def test_a_command_that_gets_no_connection_in_time_is_unavailable(redis_url: str) -> None:
    async with few_connections(redis_url, 0.3) as redis, asyncio.TaskGroup() as group:
        held = [group.create_task(hold(redis, 0)) for _ in range(MOST)]
        await asyncio.sleep(0.05)
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(Unavailable), redis_errors():
                await redis.get("key")
        assert time.monotonic() - began > 0.2
        for task in held:
            task.cancel()


async def test_a_reply_that_does_not_come_in_time_is_unavailable_and_costs_one_connection(redis_url: str) -> None:
    async with few_connections(redis_url, 0.3) as redis:
        with pytest.raises(Unavailable), redis_errors():
            await redis.blpop(["nothing"], timeout=0)  # pyright: ignore
        await redis.set("key", "7")
        assert await redis.get("key") == "7"


async def test_the_timer_of_an_earlier_reply_does_not_end_a_later_one(redis_url: str) -> None:
    async with few_connections(redis_url, 2.0) as redis:
        await redis.ping()  # pyright: ignore
        await asyncio.sleep(1.5)
        assert await redis.blpop(["nothing"], timeout=1) is None  # pyright: ignore


async def test_a_connection_that_the_server_has_closed_is_replaced_unseen(redis_url: str) -> None:
    async with few_connections(redis_url, 30.0) as redis:
        own = await redis.client_id()  # pyright: ignore
        async with few_connections(redis_url, 30.0) as other:
            await other.client_kill_filter(_id=own)  # pyright: ignore
        assert await redis.client_id() != own  # pyright: ignore


async def test_whoever_stops_waiting_leaves_the_connection_to_the_next(redis_url: str) -> None:
    async with few_connections(redis_url, 30.0) as redis:
        for _ in range(20):
            burst = [asyncio.create_task(_set(redis, number)) for number in range(10 * MOST)]
            await asyncio.sleep(0)
            for task in burst[::2]:
                task.cancel()
            await asyncio.wait(burst)
            assert all(task.result() for task in burst[1::2])
        assert await asyncio.gather(*(redis.ping() for _ in range(MOST)))  # pyright: ignore


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancelled_task_ends_at_whatever_moment_of_its_command(redis_url: str, turns: int) -> None:
    async with few_connections(redis_url, 30.0) as redis:
        await redis.ping()  # pyright: ignore
        for number in range(50):
            asked = asyncio.create_task(_set(redis, number))
            for _ in range(turns):
                await asyncio.sleep(0)
            was_cancelled = asked.cancel()
            [ended] = await asyncio.gather(asked, return_exceptions=True)
            assert isinstance(ended, asyncio.CancelledError) == was_cancelled
        assert await _set(redis, 0)


async def test_a_burst_of_which_half_is_cancelled_leaves_no_connection_taken(redis_url: str) -> None:
    async with few_connections(redis_url, 0.1) as redis:
        for turns in range(40):
            burst = [asyncio.create_task(_set(redis, number)) for number in range(6 * MOST)]
            for task in burst[::2]:
                for _ in range(turns % 4):
                    await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait(burst)
        in_use = redis.connection_pool.get_connection_count()[1]  # pyright: ignore
        assert in_use[0] == 0
        assert await _set(redis, 0)
