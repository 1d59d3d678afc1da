"""Which failures of Redis pass, and so answer 503."""

import signal

import pytest
from redis import exceptions

from memloop.wire.errors import Unavailable
from memloop_state.connecting import connect
from memloop_state.link import all_sent, redis_errors, sent
from tests.fakes.redis_server import RedisServer


async def test_a_redis_that_does_not_answer_in_time_is_unavailable() -> None:
    server = RedisServer.start()
    redis = connect(server.url, connect_timeout_s=30.0, read_timeout_s=0.2)
    try:
        assert server.command("CLIENT PAUSE 60000") == b"+OK\r\n"
        with pytest.raises(Unavailable, match="in time") as raised, redis_errors():
            await redis.get("key")
    finally:
        await redis.aclose()
        server.stop()
    assert (raised.value.http_status, raised.value.code, raised.value.retry_after_s) == (503, "unavailable", 2.0)


async def test_a_redis_that_does_not_take_a_command_in_time_is_unavailable() -> None:
    server = RedisServer.start()
    redis = connect(server.url, connect_timeout_s=30.0, read_timeout_s=0.5)
    try:
        await redis.get("key")
        server.process.send_signal(signal.SIGSTOP)
        with pytest.raises(Unavailable, match="in time"), redis_errors():
            await redis.set("key", bytes(64 << 20))
    finally:
        server.process.send_signal(signal.SIGCONT)
        await redis.aclose()
        server.stop()


async def test_a_replica_that_a_script_writes_to_is_unavailable(redis_server: RedisServer) -> None:
    replica = RedisServer.start(options=("--replicaof", "127.0.0.1", str(redis_server.port)))
    redis = connect(replica.url, connect_timeout_s=30.0, read_timeout_s=30.0)
    try:
        with pytest.raises(Unavailable):
            await sent(redis, "EVAL", "return redis.call('SET', KEYS[1], '1')", 1, "key")
    finally:
        await redis.aclose()
        replica.stop()


async def test_a_primary_without_replicas_that_several_commands_go_to_is_unavailable() -> None:
    server = RedisServer.start(options=("--min-replicas-to-write", "1"))
    redis = connect(server.url, connect_timeout_s=30.0, read_timeout_s=30.0)
    try:
        with pytest.raises(Unavailable):
            await all_sent(redis, [("GET", "key"), ("SET", "key", "1")])
    finally:
        await redis.aclose()
        server.stop()


async def test_a_command_that_is_wrong_stays_a_fault_of_ours(redis_url: str) -> None:
    redis = connect(redis_url, connect_timeout_s=30.0, read_timeout_s=30.0)
    try:
        await redis.set("OOM ", "-OOM ")
        with pytest.raises(exceptions.ResponseError, match="WRONGTYPE"), redis_errors():
            await redis.lpush("OOM ", "x")  # pyright: ignore[reportUnknownMemberType]
    finally:
        await redis.aclose()
