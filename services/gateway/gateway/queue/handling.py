"""Defines how the runner calls a queue's handler, and builds the rules for queues from the settings."""

from dataclasses import dataclass
from typing import Protocol

from prometheus_client import Counter

from gateway.settings import GatewaySettings, weights_of
from memloop.wire.errors import MemloopError
from memloop_state.link import State
from memloop_state.queue.jobs import Lease
from memloop_state.room import QueueRules, room_of


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


def queue_rules(settings: GatewaySettings, state: State, *, refused: Counter) -> QueueRules:
    """Return the rules; ``refused`` counts by queue and reason."""
    room = room_of(state, settings, tenant_share=settings.tenant_queue_share)
    return QueueRules(
        weights_of(settings.tenant_weights), room, lambda queue, reason: refused.labels(queue, reason).inc()
    )
