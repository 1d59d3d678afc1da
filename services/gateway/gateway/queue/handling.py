"""Defines how the runner calls a queue's handler: the job's lease and the result it returns."""

from dataclasses import dataclass
from typing import Protocol

from memloop.wire.errors import MemloopError
from memloop_state.queue.jobs import JobCancelled, LaneLost, Lease
from memloop_state.queue.lanes import LaneQueue


@dataclass(frozen=True, slots=True)
class JobResult:
    """The final status of a job and its record as JSON.

    ``keep_ms`` defaults to the queue's; 0 keeps record, payload and journal indefinitely. ``keeps_work`` keeps payload
    and journal as long as the record, so that an operator can requeue the job.
    """

    status: str
    record: str
    keep_ms: int | None = None
    keeps_work: bool = False


class Hold(Protocol):
    """The running job's hold on its lane."""

    @property
    def token(self) -> int:
        """The lane's fencing token."""
        ...

    async def check(self) -> None:
        """Raise LaneLost when another holder has the lane."""
        ...


class Handler(Protocol):
    """Executes the jobs of one queue."""

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Run the job. Raises JobGone, and any error that makes the job fail."""
        ...

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Return the result of a job that becomes a dead letter. Raises JobGone."""
        ...

    async def cancelled(self, lease: Lease) -> JobResult:
        """Return the result of a job that its client cancelled. Raises JobGone."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseHold:
    """A hold backed by the job's lease."""

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
