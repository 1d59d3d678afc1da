"""The tickets of a lane queue: one stream, or one per tier, holds those that a worker has taken.

``gateway.queue.turns`` decides which lane is next.
"""

from collections.abc import AsyncIterator, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from redis import exceptions
from redis.asyncio import Redis

from gateway.queue import tenant_lanes, turns
from gateway.queue.key_names import JobPartition
from memloop.wire.errors import Unavailable
from memloop_state.link import redis_errors
from memloop_state.scripts import Script, entry_list

GROUP = "workers"
DEFAULT_TIER = "default"


@dataclass(frozen=True, slots=True)
class Ticket:
    """A stream entry: this lane has work, and this job was its head when the entry was written.

    An entry that an older version wrote has no tenant.
    """

    id: str
    lane: str
    job_id: str
    tenant: str = ""


class Tickets:
    """Takes lanes of one partition and writes their tickets to the streams of ``tiers``, listed from the most urgent.

    A lane's name begins with its tier and a colon, unless it is the default tier. ``weights`` are the tenants' jobs per
    turn; a tenant without one has one.
    """

    def __init__(
        self, redis: Redis, part: JobPartition, queue: str, tiers: Sequence[str], weights: Mapping[str, int]
    ) -> None:
        self._redis = redis
        self._stream = part.stream(queue)
        self._tiers = tuple(tiers)
        self._bell = part.bell(queue)
        self._turns = [part.turns(queue), part.picks(queue), part.since(queue), self._bell]
        self._weights = [word for tenant, weight in weights.items() for word in (tenant, weight)]
        self._take = Script(redis, turns.TAKE)
        self._read = Script(redis, tenant_lanes.READ)

    @property
    def streams(self) -> Sequence[str]:
        """The streams, most urgent first."""
        return [self._stream if tier == DEFAULT_TIER else f"{self._stream}:{tier}" for tier in self._tiers]

    def stream_of(self, lane: str) -> str:
        """Return the stream of the lane's tickets."""
        tier, colon, _ = lane.partition(":")
        return f"{self._stream}:{tier}" if colon and tier in self._tiers else self._stream

    async def ensure_groups(self) -> None:
        """Create missing streams and consumer groups."""
        for stream in self.streams:
            if await self._has_group(stream):
                continue  # a full Redis refuses to be asked for it again
            with redis_errors():
                try:
                    await self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
                except exceptions.ResponseError as error:
                    if "BUSYGROUP" not in str(error):
                        raise

    async def _has_group(self, stream: str) -> bool:
        with redis_errors():
            return bool(await self._redis.exists(stream) and await self._redis.xinfo_groups(stream))

    async def take(self, consumer: str, *, passing: Collection[str] = ()) -> Ticket | None:
        """Take the lane whose turn it is, if any lane waits; pass over these tenants."""
        keys = [*self._turns, *self.streams, *map(ready, self.streams)]
        with _group_exists():
            found = await self._take.rows(keys, [GROUP, consumer, len(passing), *passing, *self._weights])
        return Ticket(*found) if found else None

    async def wait(self, *, block_ms: int) -> None:
        """Wait at most ``block_ms`` until a lane waits for a worker; another worker may be faster to take it."""
        with redis_errors():
            await self._redis.blpop([self._bell], timeout=block_ms / 1000)  # pyright: ignore

    async def lanes_of(self, tenant: str, *, prefix: str) -> AsyncIterator[Sequence[str]]:
        """Yield the tenant's lanes with jobs in pages; the names of its lanes begin with ``prefix``."""
        for stream in self.streams:
            keys, last, more = [stream, delayed(stream), ready(stream)], "", True
            while more:
                last, *lanes = await self._read.rows(keys, [tenant, prefix, last, tenant_lanes.MOST_LANES])
                yield lanes
                more = bool(last)

    async def claim_stale(self, consumer: str, *, idle_ms: int, count: int) -> list[Ticket]:
        """Claim tickets of one tier whose worker has been silent for ``idle_ms``."""
        for stream in self.streams:
            with redis_errors(), _group_exists():
                reply = await self._redis.xautoclaim(stream, GROUP, consumer, idle_ms, count=count)
            if found := _tickets(entry_list(cast(Sequence[object], reply[1]))):
                return found
        return []


def ready(stream: str) -> str:
    """Name the sorted set of a tier's lanes that wait for a worker, by tenant and time."""
    return f"{stream}:ready"


def delayed(stream: str) -> str:
    """Name the sorted set of a tier's lanes that wait for their next attempt."""
    return f"{stream}:delayed"


def _tickets(found: Sequence[tuple[str, dict[str, str]]]) -> list[Ticket]:
    return [Ticket(id_, fields["lane"], fields["job"], fields.get("tenant", "")) for id_, fields in found]


@contextmanager
def _group_exists() -> Generator[None]:
    """Raise Unavailable when Redis lost its data, and with it the group, until ``ensure_groups`` recreates it."""
    try:
        yield
    except exceptions.ResponseError as error:
        if "NOGROUP" not in str(error):
            raise
        raise Unavailable("Redis has lost the queue's consumer group.") from error
