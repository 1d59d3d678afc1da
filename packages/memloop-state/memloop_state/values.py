"""Small states that need no table: texts that end, named texts and a guard of them, counts, indexes and streams.

Each has a kind, which begins the names of its keys. Methods raise Unavailable when Redis is
unreachable.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, TypeAlias, cast

from memloop.chores import patient
from memloop.wire.errors import DependencyError
from memloop_state.link import State, all_sent, redis_errors, sent
from memloop_state.steps import Partitions, Steps


@dataclass(frozen=True, slots=True)
class Guard:
    """What some fields of a hash held when it was read, as a digest."""

    key: str
    names: Sequence[str]
    digest: str


def guard_of(key: str, names: Sequence[str], known: Mapping[str, str]) -> Guard:
    """Return the guard of the fields ``names``, of which those in ``known`` exist."""
    values = (known[name].encode() if name in known else None for name in names)
    whole = b" ".join(b"-" if value is None else b"%d:%s" % (len(value), value) for value in values)
    return Guard(key, names, hashlib.sha1(whole, usedforsecurity=False).hexdigest())


class Values:
    """Texts by name. Each ends ``keep_s`` seconds after it was put, and lies in its name's partition."""

    def __init__(self, redis: State, kind: str, *, keep_s: int) -> None:
        self._redis: Any = redis
        self._kind = kind
        self._keep_s = keep_s
        self._partitions = Partitions(redis)

    def key(self, name: str) -> str:
        """Name the value's key, for a script of its partition."""
        return self._partitions.of_name(name).key(self._kind, name)

    async def get(self, name: str) -> str | None:
        """Return the text, None where there is none."""
        return await sent(self._redis, "GET", self.key(name))

    async def put(self, name: str, value: str) -> str | None:
        """Replace the text, and return the former one."""
        return await sent(self._redis, "SET", self.key(name), value, "EX", self._keep_s, "GET", get=True)

    async def delete(self, name: str, *, quick: bool = False) -> None:
        """Delete the text. Unless it is ``quick``, replicas then have this, and all that was written before it."""
        await sent(self._redis, "DEL", self.key(name), sure=not quick)


class Fields:
    """Named texts of each owner, at most ``most`` of them."""

    def __init__(self, redis: State, kind: str, *, most: int | None = None) -> None:
        self._redis: Any = redis
        self._kind = kind
        self._most = "" if most is None else most
        self._steps = Steps(redis, "lease")

    def key(self, owner: str) -> str:
        """Name the hash, for a ``Guard``."""
        return f"memloop:{self._kind}:{owner}"

    async def get(self, owner: str, names: Sequence[str]) -> dict[str, str]:
        """Return those of these texts that exist, by name."""
        found: list[Any] = await sent(self._redis, "HMGET", self.key(owner), *names) if names else []
        return {name: value for name, value in zip(names, found, strict=True) if value is not None}

    async def all(self, owner: str) -> dict[str, str]:
        """Return all texts of the owner, by name."""
        return await sent(self._redis, "HGETALL", self.key(owner))

    async def put(self, owner: str, name: str, value: str) -> bool:
        """Set a text. Returns False, and sets nothing, where the owner has too many."""
        return bool(await self._steps("put", [self.key(owner)], [name, value, self._most], acknowledged=True))

    async def delete(self, owner: str, *names: str) -> int:
        """Delete these texts; return how many there were."""
        return int(await sent(self._redis, "HDEL", self.key(owner), *names, sure=True))


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts by name that many processes add up, kept for ``keep_s`` seconds after the last one.

    Those that Redis does not take in ``wait_s`` seconds are dropped: a lost answer does not say whether it took them.
    """

    state: State
    kind: str
    _: KW_ONLY
    keep_s: int
    wait_s: float

    async def add(self, counts: Mapping[tuple[str, str], int]) -> bool:
        """Add to the counts, by name and field, in one pipeline. Returns False if they are dropped."""
        try:
            added = [("HINCRBY", self._key(name), field, count) for (name, field), count in counts.items()]
            kept = [("EXPIRE", self._key(name), self.keep_s) for name in {name for name, _ in counts}]
            async with patient(self.wait_s):
                await all_sent(self.state, [*added, *kept])
        except (DependencyError, TimeoutError):
            return False
        return True

    async def read(self, names: Iterable[str]) -> list[Mapping[str, int]]:
        """Return the counts of these names, in this order."""
        found = await all_sent(self.state, [("HGETALL", self._key(name)) for name in names])
        return [{field: int(count) for field, count in counts.items()} for counts in found]

    def _key(self, name: str) -> str:
        return f"memloop:{self.kind}:{name}"


@dataclass(frozen=True, slots=True)
class Indexes:
    """Indexes by key. Methods raise Unavailable when Redis is unreachable."""

    state: State

    async def add(self, index: str, numbers: Mapping[str, float], *, known: bool = False, sure: bool = False) -> None:
        """List ids, or give those that are ``known`` another number; wait for replicas if that is to be ``sure``."""
        pairs = [part for id_, at in numbers.items() for part in (at, id_)]
        await sent(self.state, "ZADD", index, *["XX"] * known, *pairs, sure=sure)

    async def remove(self, index: str, *ids: str) -> None:
        """Take ids out."""
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
        """Return how many ids are listed."""
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
        """Return how many entries a stream has."""
        return int(await sent(self.state, "XLEN", stream))

    async def delete(self, stream: str, entry: str) -> None:
        """Delete one entry."""
        await sent(self.state, "XDEL", stream, entry)
