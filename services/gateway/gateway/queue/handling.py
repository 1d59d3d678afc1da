"""What a queue's jobs are to the runner: a handler, its grip on the lane, and how a job ended."""

from dataclasses import dataclass
from typing import Protocol

from gateway.queue.lanes import JobCancelled, LaneLost, LaneQueue, Lease
from memloop.wire.errors import MemloopError


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: its status and its record as JSON.

    ``keep_ms`` is the queue's when it is None; 0 keeps record, payload and journal for ever.
    """

    status: str
    record: str
    keep_ms: int | None = None


class Hold(Protocol):
    """The running job's grip on its lane."""

    @property
    def token(self) -> int:
        """The lane's fencing token."""
        ...

    async def check(self) -> None:
        """Raise LaneLost when the lane is another's by now."""
        ...


class Handler(Protocol):
    """What a queue's jobs are."""

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Do the job. Raises JobGone, and anything that makes it fail."""
        ...

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """The ending of a job that becomes a dead letter. Raises JobGone."""
        ...

    async def cancelled(self, lease: Lease) -> JobResult:
        """The ending of a job that its client stopped. Raises JobGone."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseHold:
    """A lease as the job sees it."""

    queue: LaneQueue
    lease: Lease
    consumer: str
    lease_ms: int

    @property
    def token(self) -> int:
        """The lane's fencing token."""
        return self.lease.token

    async def check(self) -> None:
        """Renew the lease. Raises LaneLost, JobCancelled."""
        beat = await self.queue.beat(self.lease, consumer=self.consumer, lease_ms=self.lease_ms)
        if beat == "lost":
            raise LaneLost
        if beat == "cancel":
            raise JobCancelled
