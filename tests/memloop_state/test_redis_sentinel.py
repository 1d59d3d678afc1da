"""A real Redis behind a real Sentinel: everything works through it, and follows the primary."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from memloop.wire.errors import Unavailable
from memloop_state.connecting import connect, primaries
from memloop_state.link import redis_errors, sent
from tests.fakes.processes import PATIENCE_S
from tests.fakes.redis_sentinels import WatchedRedis

SET = "return redis.call('SET', KEYS[1], ARGV[1])"
HOUR_MS = 3_600_000


def client_of(url: str, *, ack_copies: int = 0, read_timeout_s: float = 30.0) -> Redis:
    return connect(url, connect_timeout_s=30.0, read_timeout_s=read_timeout_s, ack_copies=ack_copies)


@pytest.fixture(scope="module")
def watched() -> Iterator[WatchedRedis]:
    """A primary with one replica. Fails over on command only."""
    servers = WatchedRedis.start(replicas=1, sentinels=1, down_ms=HOUR_MS)
    yield servers
    servers.stop()


@pytest.fixture
async def redis(watched: WatchedRedis) -> AsyncIterator[Redis]:
    async with client_of(watched.url, ack_copies=1) as client:
        yield client


async def test_scripts_transactions_pipelines_and_blocking_reads_work(redis: Redis) -> None:
    await sent(redis, "EVAL", SET, 1, "script", "1")
    for transaction in (True, False):
        async with redis.pipeline(transaction=transaction) as pipe:
            pipe.rpush("list", "a")  # pyright: ignore
            pipe.get("script")  # pyright: ignore
            assert (await pipe.execute())[1] == "1"
    assert await redis.blpop(["list"], timeout=30) == ("list", "a")  # pyright: ignore


async def test_messages_arrive(redis: Redis) -> None:
    async with redis.pubsub() as channel, asyncio.timeout(PATIENCE_S):  # pyright: ignore[reportUnknownMemberType]
        await channel.subscribe("news")  # pyright: ignore
        assert (await channel.get_message(timeout=None) or {})["type"] == "subscribe"  # pyright: ignore
        await redis.publish("news", "hello")  # pyright: ignore
        assert (await channel.get_message(timeout=None) or {})["data"] == "hello"  # pyright: ignore


async def test_the_primary_is_found_for_a_backup(watched: WatchedRedis, redis: Redis) -> None:
    [address] = await primaries(redis)
    assert address.port == watched.servers[watched.primary()].port


async def test_an_acknowledged_write_is_on_the_replica(watched: WatchedRedis, redis: Redis) -> None:
    replica = 1 - watched.primary()
    for number in range(20):
        await sent(redis, "EVAL", SET, 1, "of-script", number, sure=True)
        assert watched.ask(replica, "GET", "of-script") == str(number)
        await sent(redis, "SET", "of-command", number, sure=True)
        assert watched.ask(replica, "GET", "of-command") == str(number)


async def test_a_command_that_is_wrong_leaves_no_reply_behind(redis: Redis) -> None:
    wrong = "return redis.call('LPUSH', KEYS[1], 'x')"
    await redis.set("text", "1")
    for _ in range(20):
        with pytest.raises(Exception, match="WRONGTYPE"):
            await sent(redis, "EVAL", wrong, 1, "text", sure=True)
        assert await redis.get("text") == "1"


async def test_a_replica_takes_over_and_refuses_what_nothing_else_would_hold(
    watched: WatchedRedis, redis: Redis
) -> None:
    async with client_of(watched.url) as easy, client_of(watched.url, ack_copies=1, read_timeout_s=1.0) as careful:
        await sent(redis, "SET", "key", "before", sure=True)
        dead = watched.kill_primary()
        watched.set_down_ms(100)
        watched.wait_until_taken_over(dead)
        watched.set_down_ms(HOUR_MS)
        watched.wait_until_taken_over(dead)  # a slow machine's Sentinel may have missed the new primary meanwhile
        assert await redis.get("key") == "before"
        with pytest.raises(Unavailable), redis_errors():
            await sent(careful, "SET", "key", "on one", sure=True)
        assert await sent(easy, "SET", "key", "on one, as agreed", sure=True)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("redis+sentinel://a:1,b:2", "ends with the primary's name"),
        ("redis+sentinel:///name", "names its nodes"),
        ("redis+sentinel://a:1,:2/name", "names its nodes"),
        ("redis+cluster://a:1/2", "only database 0"),
        ("redis+cluster://a:1/?db=2", "only database 0"),
        ("redis+other://a:1", "one of the following schemes"),
    ],
)
def test_a_wrong_url_is_refused(url: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        client_of(url)


async def test_the_urls_credentials_are_the_servers_and_the_sentinels_have_their_own() -> None:
    url = "rediss+sentinel://me:a%2Fb@one,two:7/first?sentinel_username=watch&sentinel_password=c&db=3&ssl_ca_certs=/ca"
    async with client_of(url) as redis:
        pool = redis.connection_pool
        here, there = pool.connection_kwargs, pool.sentinel_manager.sentinels  # pyright: ignore
    shown = [(one.get_connection_kwargs()["host"], one.get_connection_kwargs()["port"]) for one in there]  # pyright: ignore
    assert shown == [("one", 26379), ("two", 7)]
    assert (here["username"], here["password"], here["db"], here["ssl_ca_certs"]) == ("me", "a/b", 3, "/ca")
    asked = there[1].get_connection_kwargs()  # pyright: ignore
    assert (asked["username"], asked["password"], asked["ssl_ca_certs"]) == ("watch", "c", "/ca")
