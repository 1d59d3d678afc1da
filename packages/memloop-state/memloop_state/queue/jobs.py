"""A queue's jobs as values, and the order in which workers take lanes.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from memloop.wire.base import Origin
from memloop_state.owners import Owner


@dataclass(frozen=True, slots=True)
class Worker:
    """Who takes lanes: after ``idle_ms`` of silence another worker gets them, and after ``lease_ms`` they are lost."""

    name: str
    lease_ms: int
    idle_ms: int


Beat: TypeAlias = Literal["held", "lost", "cancel"]
Counter: TypeAlias = Literal["failures", "outages"]
Entry: TypeAlias = tuple[Mapping[str, object], Sequence[str]]
"""The terms and texts of a new job for a Lua script."""


class JobGone(Exception):
    """The job was erased while it ran."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one job. ``failures`` and ``outages`` count earlier runs, ``starts`` includes this one."""

    worker: Worker
    lane: str
    job_id: str
    token: int
    starts: int
    failures: int
    outages: int
    tenant: str = ""
    origin: Origin = field(default_factory=Origin)


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
