"""What a test looks up in Redis behind the gateway's back, typed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Redis]:
    """A client of the test's own."""
    redis = Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    try:
        yield redis
    finally:
        await redis.aclose()


async def command(redis: Redis, *words: str) -> Any:
    """Any command's raw reply."""
    return await redis.execute_command(*words)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


async def keys(redis: Redis, pattern: str = "*") -> list[str]:
    """The keys, sorted."""
    return sorted(key.decode() for key in await command(redis, "KEYS", pattern))


async def keys_that_hold(redis: Redis, *texts: bytes) -> list[str]:
    """The keys whose value has one of the texts in it, whatever its kind."""
    await command(redis, "CONFIG", "SET", "rdbcompression", "no")
    dumps = {key: bytes(await command(redis, "DUMP", key)) for key in await keys(redis)}
    return [key for key, dump in dumps.items() if any(text in dump for text in texts)]
