"""Small states that need no table: single texts that end, named texts of one owner, and counts.

Each has a kind (``memloop_state.kinds``), which begins the names of its keys. Methods raise Unavailable when Redis is
unreachable.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redis.asyncio import Redis

from memloop.patience import patient
from memloop.wire.errors import DependencyError
from memloop_state.link import acknowledged, redis_errors
from memloop_state.partitions import Partition, Partitions
from memloop_state.scripts import Script, lua, text


class Values:
    """Texts by name. Each ends ``keep_s`` seconds after it was put, and lies in its name's partition."""

    def __init__(self, redis: Redis, kind: str, *, keep_s: int | None) -> None:
        self._redis: Any = redis
        self._kind = kind
        self._keep_s = keep_s
        self._partitions = Partitions(redis, Partition)

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

    def __init__(self, redis: Redis, kind: str, *, most: int | None = None) -> None:
        self._redis: Any = redis
        self._kind = kind
        self._most = "" if most is None else most
        self._put = Script(redis, lua("fields"), acknowledged=True)

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
        return bool(await self._put.number([self.key(owner)], [name, value, self._most]))

    async def delete(self, owner: str, *names: str) -> int:
        """Delete these texts; return how many there were."""
        with redis_errors():
            return int(await acknowledged(self._redis, "HDEL", self.key(owner), *names))


class Counts:
    """Counts by name that many processes add up, kept for ``keep_s`` seconds after the last one.

    They are gathered in the process and sent in one pipeline, so that no request waits. Those that Redis does not take
    in ``wait_s`` seconds are dropped: a lost answer does not say whether it took them.
    """

    def __init__(self, redis: Redis, kind: str, *, keep_s: int, wait_s: float) -> None:
        self._redis = redis
        self._kind = kind
        self._keep_s = keep_s
        self._wait_s = wait_s
        self._waiting: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, field: str, count: int) -> None:
        """Count so many more under the name."""
        self._waiting[name, field] += count

    async def send(self) -> Counter[tuple[str, str]]:
        """Send the counts that wait; return those that are lost, by name and field."""
        waiting, self._waiting = self._waiting, Counter()
        try:
            async with patient(self._wait_s), self._redis.pipeline(transaction=False) as pipe:
                for (name, field), count in waiting.items():
                    pipe.hincrby(self._key(name), field, count)
                for name in {name for name, _ in waiting}:
                    pipe.expire(self._key(name), self._keep_s)
                with redis_errors():
                    await pipe.execute()
        except (DependencyError, TimeoutError):
            return waiting
        return Counter()

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
