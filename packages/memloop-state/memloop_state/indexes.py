"""Ids in the order of a number, and entries in the order in which they came: indexes and streams, by key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, cast

from memloop_state.link import State, all_sent, redis_errors, sent


@dataclass(frozen=True, slots=True)
class Indexes:
    """Indexes by key. Methods raise Unavailable when Redis is unreachable."""

    state: State

    async def add(self, index: str, numbers: Mapping[str, float], *, known: bool = False, sure: bool = False) -> None:
        """List ids, or give those that are ``known`` another number; wait for replicas if that is to be ``sure``."""
        pairs = [part for id_, at in numbers.items() for part in (at, id_)]
        await sent(self.state, "ZADD", index, *["XX"] * known, *pairs, sure=sure)

    async def remove(self, index: str, *ids: str) -> None:
        if ids:
            await sent(self.state, "ZREM", index, *ids)

    async def ids(self, index: str, *, start: int = 0, most: int | None = None, newest: bool = False) -> list[str]:
        """Return ids in the order of their numbers, from the one at place ``start`` on."""
        command, last = "ZREVRANGE" if newest else "ZRANGE", -1 if most is None else start + most - 1
        return await sent(self.state, command, index, start, last)

    async def due(self, index: str, until: float, *, most: int) -> list[str]:
        """Return the ids whose number is at most ``until``, the lowest first."""
        return await sent(self.state, "ZRANGEBYSCORE", index, "-inf", until, "LIMIT", 0, most)

    async def place(self, index: str, id_: str, *, newest: bool = False) -> int | None:
        """Return at which place an id stands, None where it is not listed."""
        return await sent(self.state, "ZREVRANK" if newest else "ZRANK", index, id_)

    async def number(self, index: str, id_: str) -> float | None:
        """Return an id's number, None where it is not listed."""
        return await sent(self.state, "ZSCORE", index, id_)

    async def newest(self, index: str, *, until: float, start: int, most: int) -> list[tuple[float, str]]:
        """Return numbers of at most ``until`` with their ids, the highest first, from the one at ``start`` on."""
        asked = (index, until, "-inf", "WITHSCORES", "LIMIT", start, most)
        found = await sent(self.state, "ZREVRANGEBYSCORE", *asked, withscores=True)
        return [(float(number), one) for one, number in found]

    async def count(self, index: str) -> int:
        return int(await sent(self.state, "ZCARD", index))

    async def lowest(self, index: str) -> int | None:
        """Return the lowest number, None where nothing is listed."""
        found = await sent(self.state, "ZRANGE", index, 0, 0, "WITHSCORES", withscores=True)
        return next((int(float(pair[1])) for pair in found), None)


Entries: TypeAlias = list[tuple[str, dict[str, str]]]
"""Ids with the fields of each."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Streams by key. Methods raise Unavailable when Redis is unreachable."""

    state: State

    async def append(self, entries: Sequence[tuple[str, Mapping[str, str]]], *, most: int) -> None:
        """Append entries to their streams in one round trip; of each at least ``most`` stay."""
        kept = ("MAXLEN", "~", most, "*")
        pairs = [(stream, chain.from_iterable(fields.items())) for stream, fields in entries]
        await all_sent(self.state, [("XADD", stream, *kept, *fields) for stream, fields in pairs])

    async def after(self, stream: str, entry: str, *, most: int) -> Entries:
        """Return the entries behind one ('' = from the first one), the oldest first."""
        begin = f"({entry}" if entry else "-"
        return await sent(self.state, "XRANGE", stream, begin, "+", "COUNT", most)

    async def before(self, stream: str, entry: str, *, most: int) -> Entries:
        """Return the entries before one ('' = from the last one), the newest first."""
        if entry == "0-0":  # Redis takes nothing before the first possible id for an error
            return []
        end = f"({entry}" if entry else "+"
        return await sent(self.state, "XREVRANGE", stream, end, "-", "COUNT", most)

    async def last(self, stream: str) -> str | None:
        """Return the id of the last entry, None of an empty stream."""
        return next((entry for entry, _ in await self.before(stream, "", most=1)), None)

    async def wait(
        self, places: Mapping[str, str], *, wait_ms: int, most: int | None = None
    ) -> list[tuple[str, Entries]]:
        """Wait for entries behind these places of their streams; return none of a stream that has none in time."""
        with redis_errors():
            return await cast(Any, self.state).xread(dict(places), count=most, block=wait_ms)

    async def count(self, stream: str) -> int:
        return int(await sent(self.state, "XLEN", stream))

    async def delete(self, stream: str, entry: str) -> None:
        await sent(self.state, "XDEL", stream, entry)
