"""Streams: entries in the order in which they were appended, each with an id and fields."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from redis.asyncio import Redis

from memloop_state.link import redis_errors
from memloop_state.scripts import entries_by_stream, entry_list

Entries: TypeAlias = list[tuple[str, dict[str, str]]]
"""Ids with the fields of each."""


class Streams:
    """Streams by key. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis

    async def append(self, entries: Sequence[tuple[str, Mapping[str, str]]], *, most: int) -> None:
        """Append entries to their streams in one round trip; of each at least ``most`` stay."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for stream, fields in entries:
                pipe.xadd(stream, fields, maxlen=most, approximate=True)
            with redis_errors():
                await pipe.execute()

    async def after(self, stream: str, entry: str, *, most: int) -> Entries:
        """Return the entries behind one ('' = from the first one), the oldest first."""
        with redis_errors():
            return entry_list(await self._redis.xrange(stream, min=f"({entry}" if entry else "-", count=most) or [])

    async def before(self, stream: str, entry: str, *, most: int) -> Entries:
        """Return the entries before one ('' = from the last one), the newest first."""
        with redis_errors():
            return entry_list(await self._redis.xrevrange(stream, max=f"({entry}" if entry else "+", count=most) or [])

    async def last(self, stream: str) -> str | None:
        """Return the id of the last entry, None of an empty stream."""
        return next((entry for entry, _ in await self.before(stream, "", most=1)), None)

    async def wait(
        self, places: Mapping[str, str], *, wait_ms: int, most: int | None = None
    ) -> list[tuple[str, Entries]]:
        """Wait for entries behind these places of their streams; return none of a stream that has none in time."""
        with redis_errors():
            return entries_by_stream(await self._redis.xread(dict(places), count=most, block=wait_ms))

    async def count(self, stream: str) -> int:
        """Return how many entries a stream has."""
        with redis_errors():
            return int(await self._redis.xlen(stream))

    async def delete(self, stream: str, entry: str) -> None:
        """Delete one entry."""
        with redis_errors():
            await self._redis.xdel(stream, entry)
