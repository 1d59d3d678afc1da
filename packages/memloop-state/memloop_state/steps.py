"""Places keys in Redis, runs Lua scripts as typed calls, and keeps what needs no table: texts and counts by name.

A key that begins ``memloop:{tag}`` is in the tag's slot (``link``). A *partition* is all keys under one tag: a
single server has one, a cluster twelve. The place of a name, 0 to 255, decides its partition, and an id holds its place
as two hex digits: ``evt_7f…`` is at place 0x7f. So keys that change together are in one cluster slot.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, TypeAlias

import orjson
from redis.exceptions import NoScriptError

from memloop.chores import patient
from memloop.wire.errors import DependencyError
from memloop.wire.fields import joined
from memloop.wire.memory import Namespace
from memloop_state.link import State, all_sent, place_of, redis_errors, sent, tags_of

_ID = re.compile(r"[a-z]+[_-]([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Partition:
    """The keys under one tag."""

    tag: str

    @property
    def root(self) -> str:
        """The key of a step whose other keys ``lua/prelude.lua`` names as ``key`` does."""
        return f"memloop:{{{self.tag}}}"

    def key(self, kind: str, *names: str) -> str:
        return ":".join((self.root, kind, *names))

    def hidden(self, kind: str, *names: str) -> str:
        """Name a key by a digest of names that a client chooses, which it does not show."""
        return self.key(kind, digest(*names))

    def job(self, job_id: str) -> str:
        """Name the hash of a job: payload, record, status, counters."""
        return self.key("job", job_id)

    def events(self, job_id: str) -> str:
        """Name the stream of a job's events, such as a read's."""
        return self.key("read-events", job_id)


class Partitions:
    """All partitions of one Redis: one for a single server, twelve for a cluster."""

    def __init__(self, redis: State) -> None:
        self.partitions: Sequence[Partition] = tuple(Partition(tag) for tag in tags_of(redis))

    def of_name(self, name: str) -> Partition:
        """Return the partition of a lane's or a tenant's name."""
        return self._at(place_of(name))

    def writes_of(self, namespace: Namespace) -> str:
        """Name the sorted set of the memory writes of a namespace's user, by time."""
        return self.of_name(namespace.lane()).key("events", namespace.tenant, namespace.user_id)

    def of_id(self, placed: str) -> Partition:
        """Return an id's partition. An id of a foreign format maps to the first one, where nothing has that id."""
        found = _ID.match(placed)
        return self._at(int(found[1], 16) if found else 0)

    def job(self, job_id: str) -> str:
        return self.of_id(job_id).job(job_id)

    def _at(self, place: int) -> Partition:
        return self.partitions[place % len(self.partitions)]


def id_at(prefix: str, name: str, digits: str) -> str:
    """Make an id at the place of a name from 32 hex digits, of which 30 are kept. ``prefix`` ends in ``_`` or ``-``."""
    return f"{prefix}{place_of(name):02x}{digits[2:]}"


def id_beside(prefix: str, other_id: str, digits: str) -> str:
    """Make an id at the place of another id from 32 hex digits, of which 30 are kept."""
    found = _ID.match(other_id)
    return f"{prefix}{found[1] if found else '00'}{digits[2:]}"


@lru_cache(maxsize=4096)
def digest(*names: str) -> str:
    """Return a short name for texts that a client chooses, for use in a key."""
    return hashlib.sha256(joined(*names).encode("utf-8", "surrogatepass")).hexdigest()[:32]


Args: TypeAlias = Sequence[str | bytes | int | float]


@cache
def _program(*names: str) -> tuple[str, str]:
    """Return the source of these files of ``lua/``, one behind the other, and its SHA-1."""
    parts = [(files("memloop_state") / "lua" / f"{name}.lua").read_text("utf-8") for name in names]
    source = "".join([*parts, "\nreturn steps[table.remove(ARGV, 1)]()"])
    return source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


def named(*texts: str | bytes | int | float, **terms: object) -> Args:
    """Return the arguments of a step that takes its terms as JSON, without those that are None, and texts behind."""
    return [orjson.dumps({name: term for name, term in terms.items() if term is not None}), *texts]


class Steps:
    """The atomic steps of one Lua program: the functions of its table ``steps``, called by their names.

    The program's text is sent only to a server that has the keys but not the program. An ``acknowledged`` step returns
    once replicas have what it wrote. Steps raise Unavailable.
    """

    def __init__(self, redis: State, *names: str) -> None:
        self._redis: Any = redis
        self._source, self._sha = _program("prelude", *names)

    async def __call__(self, step: str, keys: Sequence[str], args: Args, *, acknowledged: bool = False) -> Any:
        asked = (len(keys), *keys, step, *args)
        with redis_errors():
            try:
                return await self._redis.execute_command("EVALSHA", self._sha, *asked, sure=acknowledged)
            except NoScriptError:
                return await self._redis.execute_command("EVAL", self._source, *asked, sure=acknowledged)

    async def rows(self, step: str, keys: Sequence[str], args: Args, *, acknowledged: bool = False) -> list[str]:
        """Run a step that returns a list of scalars; each becomes text, nil becomes ''."""
        reply: Sequence[object] = await self(step, keys, args, acknowledged=acknowledged) or ()
        return ["" if part is None else str(part) for part in reply]


def lane_terms(queue: str, lane: str, *, line: str) -> dict[str, str]:
    """Return the terms by which a step names the keys of a queue's lane, which waits for workers in a ``line``."""
    return {"queue": queue, "line": line, "lane": lane, "digest": digest(queue, lane)}


def lane_steps(redis: State) -> Steps:
    """Return the steps of lanes and jobs: ``lua/lanes.lua``."""
    return Steps(redis, "owners", "turns", "lanes")


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
    """Texts by name, in its partition. With ``keep_s`` each ends so many seconds after it was put."""

    def __init__(self, redis: State, kind: str, *, keep_s: int | None = None) -> None:
        self._redis: Any = redis
        self._kind = kind
        self._ends = () if keep_s is None else ("EX", keep_s)
        self._partitions = Partitions(redis)

    def key(self, name: str) -> str:
        """Name the value's key, for a script of its partition."""
        return self._partitions.of_name(name).key(self._kind, name)

    async def get(self, name: str) -> str | None:
        return await sent(self._redis, "GET", self.key(name))

    def putting(self, name: str, value: str) -> Sequence[Any]:
        """Return the command that replaces the text, for ``all_sent``."""
        return ("SET", self.key(name), value, *self._ends)

    def deleting(self, name: str) -> Sequence[Any]:
        """Return the command that deletes the text, for ``all_sent``."""
        return ("DEL", self.key(name))

    async def put(self, name: str, value: str) -> str | None:
        """Replace the text, and return the former one."""
        return await sent(self._redis, *self.putting(name, value), "GET", get=True)

    async def delete(self, name: str, *, quick: bool = False) -> None:
        """Delete the text. Unless it is ``quick``, replicas then have this, and all that was written before it."""
        await sent(self._redis, *self.deleting(name), sure=not quick)


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
