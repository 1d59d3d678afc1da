"""What a test looks up in Redis behind the gateway's back, typed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from memloop_state.connecting import connect, servers
from memloop_state.link import is_cluster

_OF_SERVERS = {"CONFIG", "FLUSHALL", "KEYS"}


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Redis]:
    """A client of the test's own."""
    redis = connect(url, connect_timeout_s=30, read_timeout_s=30)
    try:
        yield redis
    finally:
        await redis.aclose()


async def command(redis: Redis, *words: str) -> Any:
    """Any command's raw reply; one about no key goes to every primary of a cluster, whose replies are joined."""
    if words[0] not in _OF_SERVERS or not is_cluster(redis):
        return await redis.execute_command(*words)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    replies = [await server(*words) for server in await servers(redis, primaries=True)]
    return [part for reply in replies for part in reply] if isinstance(replies[0], list) else replies[0]


async def keys(redis: Redis, pattern: str = "*") -> list[str]:
    """The keys, sorted."""
    return sorted(await command(redis, "KEYS", pattern))


async def keys_that_hold(redis: Redis, *texts: bytes) -> list[str]:
    """The keys whose value has one of the texts in it, whatever its kind."""
    await command(redis, "CONFIG", "SET", "rdbcompression", "no")
    dumps = {key: await redis.dump(key) or b"" for key in await keys(redis)}
    return [key for key, dump in dumps.items() if any(text in dump for text in texts)]


async def stream_length(redis: Redis, pattern: str) -> int:
    """The entries of all streams whose names match."""
    return sum([await redis.xlen(key) for key in await keys(redis, pattern)])
