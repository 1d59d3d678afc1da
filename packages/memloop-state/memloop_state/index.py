"""Ids by a number: a time at which something was made, is due or ends. Each index is a sorted set."""

from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis

from memloop_state.link import acknowledged, redis_errors
from memloop_state.scripts import text


class Indexes:
    """Indexes by key. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis

    async def add(self, index: str, numbers: Mapping[str, float], *, known: bool = False) -> None:
        """List ids, or give those that are ``known`` another number."""
        with redis_errors():
            await self._redis.zadd(index, numbers, xx=known)

    async def keep(self, index: str, id_: str, number: float) -> None:
        """List one id; replicas have it then."""
        with redis_errors():
            await acknowledged(self._redis, "ZADD", index, number, id_)

    async def remove(self, index: str, *ids: str) -> None:
        """Take ids out."""
        if ids:
            with redis_errors():
                await self._redis.zrem(index, *ids)

    async def ids(self, index: str, *, start: int = 0, most: int | None = None, newest: bool = False) -> list[str]:
        """Return ids in the order of their numbers, from the one at place ``start`` on."""
        with redis_errors():
            found = await self._redis.zrange(index, start, -1 if most is None else start + most - 1, desc=newest)
        return [text(one) for one in found]

    async def due(self, index: str, until: float, *, most: int) -> list[str]:
        """Return the ids whose number is at most ``until``, the lowest first."""
        with redis_errors():
            found = await self._redis.zrangebyscore(index, "-inf", until, start=0, num=most)
        return [text(one) for one in found]

    async def place(self, index: str, id_: str, *, newest: bool = False) -> int | None:
        """Return at which place an id stands, None where it is not listed."""
        with redis_errors():
            found = await (self._redis.zrevrank if newest else self._redis.zrank)(index, id_)
        return None if found is None else int(found)

    async def number(self, index: str, id_: str) -> float | None:
        """Return an id's number, None where it is not listed."""
        with redis_errors():
            found = await self._redis.zscore(index, id_)
        return None if found is None else float(found)

    async def newest(self, index: str, *, until: float, start: int, most: int) -> list[tuple[float, str]]:
        """Return numbers of at most ``until`` with their ids, the highest first, from the one at ``start`` on."""
        with redis_errors():
            found = await self._redis.zrevrangebyscore(index, until, "-inf", start=start, num=most, withscores=True)
        return [(float(number), text(one)) for one, number in found]

    async def count(self, index: str) -> int:
        """Return how many ids are listed."""
        with redis_errors():
            return int(await self._redis.zcard(index))

    async def lowest(self, index: str) -> int | None:
        """Return the lowest number, None where nothing is listed."""
        with redis_errors():
            found = await self._redis.zrange(index, 0, 0, withscores=True)
        return next((int(float(pair[1])) for pair in found), None)
