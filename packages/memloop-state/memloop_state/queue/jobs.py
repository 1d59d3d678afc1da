"""A queue's jobs as values: one to be queued, one that is leased, how many there are, and why a run of one stops."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from memloop.wire.correlation import Origin
from memloop_state.owners import Owner
from memloop_state.queue.tickets import Ticket

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
