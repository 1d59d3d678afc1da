"""Small states that need no table: texts that end, named texts and a guard of them, counts, indexes and streams.

Each has a kind (``memloop_state.kinds``), which begins the names of its keys. Methods raise Unavailable when Redis is
unreachable.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from memloop.patience import patient
from memloop.wire.errors import DependencyError
from memloop_state.link import State, acknowledged, redis_errors
from memloop_state.partitions import Partitions
from memloop_state.scripts import Steps, entries_by_stream, entry_list, text


@dataclass(frozen=True, slots=True)
class Guard:
    """What some fields of a hash held when it was read, as a digest."""

    key: str
    names: Sequence[str]
    digest: str

    @property
    def args(self) -> list[str | int]:
        """The arguments of ``guard_changed``."""
        return [self.digest, len(self.names), *self.names]


UNGUARDED: Final[Sequence[str | int]] = ("", 0)
"""The arguments of ``guard_changed`` where nothing is asked."""


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
        with redis_errors():
            found = await self._redis.get(self.key(name))
        return None if found is None else text(found)

    async def put(self, name: str, value: str) -> str | None:
        """Replace the text, and return the former one."""
        with redis_errors():
            found = await self._redis.set(self.key(name), value, ex=self._keep_s, get=True)
        return None if found is None else text(found)

    async def delete(self, name: str, *, quick: bool = False) -> None:
        """Delete the text. Unless it is ``quick``, replicas then have this, and all that was written before it."""
        with redis_errors():
            await (self._redis.delete(self.key(name)) if quick else acknowledged(self._redis, "DEL", self.key(name)))


class Fields:
    """Named texts of each owner, at most ``most`` of them."""

    def __init__(self, redis: State, kind: str, *, most: int | None = None) -> None:
        self._redis: Any = redis
        self._kind = kind
        self._most = "" if most is None else most
        self._steps = Steps(redis, "fields")

    def key(self, owner: str) -> str:
        """Name the hash, for a ``Guard``."""
        return f"memloop:{self._kind}:{owner}"

    async def get(self, owner: str, names: Sequence[str]) -> dict[str, str]:
        """Return those of these texts that exist, by name."""
        with redis_errors():
            found: list[Any] = await self._redis.hmget(self.key(owner), names) if names else []
        return {name: text(raw) for name, raw in zip(names, found, strict=True) if raw is not None}

    async def all(self, owner: str) -> dict[str, str]:
        """Return all texts of the owner, by name."""
        with redis_errors():
            found = await self._redis.hgetall(self.key(owner))
        return {text(name): text(raw) for name, raw in found.items()}

    async def put(self, owner: str, name: str, value: str) -> bool:
        """Set a text. Returns False, and sets nothing, where the owner has too many."""
        return bool(await self._steps.number("put", [self.key(owner)], [name, value, self._most], acknowledged=True))

    async def delete(self, owner: str, *names: str) -> int:
        """Delete these texts; return how many there were."""
        with redis_errors():
            return int(await acknowledged(self._redis, "HDEL", self.key(owner), *names))


class Counts:
    """Counts by name that many processes add up, kept for ``keep_s`` seconds after the last one.

    Those that Redis does not take in ``wait_s`` seconds are dropped: a lost answer does not say whether it took them.
    """

    def __init__(self, redis: State, kind: str, *, keep_s: int, wait_s: float) -> None:
        self._redis: Any = redis
        self._kind = kind
        self._keep_s = keep_s
        self._wait_s = wait_s

    async def add(self, counts: Mapping[tuple[str, str], int]) -> bool:
        """Add to the counts, by name and field, in one pipeline. Returns False if they are dropped."""
        try:
            async with patient(self._wait_s), self._redis.pipeline(transaction=False) as pipe:
                for (name, field), count in counts.items():
                    pipe.hincrby(self._key(name), field, count)
                for name in {name for name, _ in counts}:
                    pipe.expire(self._key(name), self._keep_s)
                with redis_errors():
                    await pipe.execute()
        except (DependencyError, TimeoutError):
            return False
        return True

    async def read(self, names: Iterable[str]) -> list[Mapping[str, int]]:
        """Return the counts of these names, in this order."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.hgetall(self._key(name))
            with redis_errors():
                found: list[Any] = await pipe.execute()
        return [{text(field): int(count) for field, count in counts.items()} for counts in found]

    def _key(self, name: str) -> str:
        return f"memloop:{self._kind}:{name}"


class Indexes:
    """Indexes by key. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
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


Entries: TypeAlias = list[tuple[str, dict[str, str]]]
"""Ids with the fields of each."""


class Streams:
    """Streams by key. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
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
