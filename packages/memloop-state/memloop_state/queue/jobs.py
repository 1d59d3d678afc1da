"""A queue's jobs as values, their tickets in one stream or one per tier, and the order in which workers take lanes.

Deficit round robin (Shreedhar and Varghese, "Efficient fair queueing using deficit round robin", SIGCOMM 1995, section
III): the tenants with waiting lanes form a ring. The tenant at its head has its turn, gives as many jobs as its weight,
and goes to the tail; a tenant that begins to wait enters at the tail. Every job costs one, so a tenant carries no
deficit from turn to turn, and with weights of one this is the round robin of Nagle (RFC 970, 1985). Between two jobs of
a tenant that waits, each other tenant gives at most its weight, however much it has queued.

Of one tenant, lanes go by tier, and within a tier by the time since when they wait. Lower tiers never starve: every
fourth pick of a tenant tries the second tier first, and every sixteenth the third.

State, per partition and queue. All of a tenant is deleted when its last waiting lane is taken:

* ``turns``: sorted set of tenants, the head first. ``picks``: hash, how many lanes were taken of each.
* ``ready``, one per tier: sorted set of ``tenant:since:job lane``, all scores 0, so that a tenant's first lane is one
  look-up by range. ``since``: sorted set of ``job lane`` by time in µs: a lane waits once, and the oldest is known.
* ``bell``: a list with one element while a lane waits. Idle workers block on it.

Each step costs O(log n) for n waiting lanes.
"""

from collections.abc import AsyncIterator, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from redis import exceptions

from memloop.wire.base import Origin
from memloop.wire.errors import Unavailable
from memloop_state.link import State, redis_errors
from memloop_state.owners import Owner
from memloop_state.steps import Partition, entry_list, lane_steps

GROUP = "workers"
DEFAULT_TIER = "default"
_MOST_LANES: Final = 500
"""Lanes in one reply that wait for a worker. The others have a worker or failed a moment ago, and are few."""


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
        self, redis: State, part: Partition, queue: str, tiers: Sequence[str], weights: Mapping[str, int]
    ) -> None:
        self._redis: Any = redis
        self._stream = part.key("jobs", queue)
        self._tiers = tuple(tiers)
        self._bell = part.key("bell", queue)
        self._turns = [part.key("turns", queue), part.key("picks", queue), part.key("since", queue), self._bell]
        self._weights = [word for tenant, weight in weights.items() for word in (tenant, weight)]
        self._step = lane_steps(redis)

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
            with redis_errors():
                if await self._redis.exists(stream) and await self._redis.xinfo_groups(stream):
                    continue  # a full Redis refuses to be asked for it again
                try:
                    await self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
                except exceptions.ResponseError as error:
                    if "BUSYGROUP" not in str(error):
                        raise

    async def take(self, consumer: str, *, passing: Collection[str] = ()) -> Ticket | None:
        """Take the lane whose turn it is, if any lane waits; pass over these tenants."""
        keys = [*self._turns, *self.streams, *map(ready, self.streams)]
        with _group_exists():
            found = await self._step.rows("take", keys, [GROUP, consumer, len(passing), *passing, *self._weights])
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
                last, *lanes = await self._step.rows("lanes_of", keys, [tenant, prefix, last, _MOST_LANES])
                yield lanes
                more = bool(last)

    async def claim_stale(self, consumer: str, *, idle_ms: int, count: int) -> list[Ticket]:
        """Claim tickets of one tier whose worker has been silent for ``idle_ms``."""
        for stream in self.streams:
            with redis_errors(), _group_exists():
                reply = await self._redis.xautoclaim(stream, GROUP, consumer, idle_ms, count=count)
            if found := entry_list(cast(Sequence[object], reply[1])):
                return [Ticket(id_, fields["lane"], fields["job"], fields.get("tenant", "")) for id_, fields in found]
        return []


def ready(stream: str) -> str:
    """Name the sorted set of a tier's lanes that wait for a worker, by tenant and time."""
    return f"{stream}:ready"


def delayed(stream: str) -> str:
    """Name the sorted set of a tier's lanes that wait for their next attempt."""
    return f"{stream}:delayed"


@contextmanager
def _group_exists() -> Generator[None]:
    """Raise Unavailable when Redis lost its data, and with it the group, until ``ensure_groups`` recreates it."""
    try:
        yield
    except exceptions.ResponseError as error:
        if "NOGROUP" not in str(error):
            raise
        raise Unavailable("Redis has lost the queue's consumer group.") from error


Beat: TypeAlias = Literal["held", "lost", "cancel"]
Counter: TypeAlias = Literal["failures", "outages"]
Entry: TypeAlias = tuple[Sequence[str], Sequence[str | int]]
"""The keys and arguments of a new job for a Lua script."""


class JobGone(Exception):
    """The job was erased while it ran."""


class JobCancelled(Exception):
    """The client cancelled the job."""


class LaneLost(Exception):
    """The lease has expired: another holder has the lane, and this one must write nothing more."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one job. ``failures`` and ``outages`` count earlier runs, ``starts`` includes this one."""

    ticket: Ticket
    token: int
    job_id: str
    starts: int
    failures: int
    outages: int
    tenant: str = ""
    origin: Origin = field(default_factory=Origin)

    @property
    def mine(self) -> str:
        """The lock's value while the lease is valid."""
        return f"{self.token}|{self.ticket.id}"

    @property
    def crashes(self) -> int:
        """The number of earlier runs that ended without recording a result."""
        return self.starts - 1 - self.failures - self.outages


@dataclass(frozen=True, slots=True)
class Submission:
    """A new job. ``fields`` fill its hash; ``index`` is the sorted set that lists it by time.

    The field ``tenant`` is whose turn the job takes, and whose quota of queued bytes it uses. An erasure of one of the
    ``owners`` after it ``began`` (see ``LaneQueue.newest_token``) forbids the job. With a ``kind`` it is noted among
    the records of its owners. An ``index`` that holds ``index_most`` jobs (0 = no limit) takes no more.
    """

    job_id: str
    lane: str
    created_ms: int
    index: str
    fields: Mapping[str, str]
    first_event: str = ""
    owners: Sequence[Owner] = ()
    kind: str = ""
    index_most: int = 0

    @property
    def tenant(self) -> str:
        """The job's tenant, empty without one."""
        return self.fields.get("tenant", "")


class IndexFull(Exception):
    """The job's index holds as many as it may: it was not queued."""


class GuardBroken(Exception):
    """What a job was made by has changed: it was not queued."""


@dataclass(frozen=True, slots=True)
class Depth:
    """The backlog of a queue. Times are in milliseconds since the epoch, None if the queue is empty.

    ``waiting_since_ms`` is since when the first lane waits for a worker; ``tenants`` have such lanes.
    """

    jobs: int
    oldest_created_ms: int | None
    waiting_since_ms: int | None = None
    tenants: int = 0
