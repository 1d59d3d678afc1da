"""How the jobs of a queue end, and the rules by which it is worked."""

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import prometheus_client

from gateway.settings import GatewaySettings, weights_of
from memloop.wire.errors import (
    ContextTruncated,
    DependencyError,
    EngineError,
    Forbidden,
    RateLimited,
    Unauthenticated,
    UnreadableAnswer,
)
from memloop_service import connects_by
from memloop_state.connecting import connect
from memloop_state.link import State
from memloop_state.queue.jobs import Lease, Worker
from memloop_state.room import QueueRules, Room

_OURS_TO_MEND = frozenset({401, 403, 404, 408, 429})


@dataclass(frozen=True, slots=True)
class JobResult:
    """The final status of a job and its record as JSON.

    ``keep_ms`` defaults to the queue's; 0 keeps record, payload and journal indefinitely. ``keeps_work`` keeps payload
    and journal as long as the record, so that an operator can requeue the job. ``if_lost`` is run when the job was
    deleted, or the lease lost, before the result could be recorded.
    """

    status: str
    record: str
    keep_ms: int | None = None
    keeps_work: bool = False
    if_lost: Callable[[], Awaitable[None]] | None = field(default=None, compare=False)


class JobCancelled(Exception):
    """The client cancelled the job."""


class LaneLost(Exception):
    """The lease has expired: another holder has the lane, and this one must write nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """How a queue is worked. ``lease_s`` and ``idle_s`` bound how long a dead worker's job waits.

    While ``concurrency`` jobs run, ``spare`` more may: of tenants that have no job running here. A tenant whose jobs
    fill all slots thus does not make another one wait for the first of them to end.
    """

    concurrency: int
    idle_s: float
    spare: int = 1
    poll_s: float = 1.0
    stop_s: float = 10.0
    lease_s: float
    attempts: int
    outages: int = 1000
    crashes: int = 10
    retry_s: float = 1.0
    max_delay_s: float = 60.0

    def worker(self, name: str) -> Worker:
        """Return a worker of that name, with its leases' times."""
        return Worker(name, lease_ms=int(self.lease_s * 1000), idle_ms=int(self.idle_s * 1000))

    def is_last(self, lease: Lease, error: Exception) -> bool:
        """Return whether the run that ends with the error was the last of its kind."""
        if is_outage(error):
            return lease.outages + 1 >= self.outages
        return lease.failures + 1 >= self.attempts

    def delay_ms(self, earlier: int) -> int:
        """Return the delay before the next attempt after ``earlier`` ones: exponential, plus up to 25 % jitter."""
        delay_s = min(self.retry_s * 2 ** min(earlier, 16), self.max_delay_s)
        return int(1000 * delay_s * random.uniform(1.0, 1.25))


def is_outage(error: Exception) -> bool:
    """Return whether a dependency is at fault, not the job: it is down, overloaded, or rejects our own key."""
    if isinstance(error, ContextTruncated | UnreadableAnswer):
        return False
    if isinstance(error, EngineError):
        return not 400 <= error.engine_status < 500 or error.engine_status in _OURS_TO_MEND
    return isinstance(error, DependencyError | RateLimited | Unauthenticated | Forbidden)


def state_of(settings: GatewaySettings) -> AbstractAsyncContextManager[Any]:
    """Return the connection to the configured state; the caller enters and exits it."""
    timeout_s, copies, url = settings.redis_timeout_s, settings.redis_ack_copies, settings.redis_url.get_secret_value()
    tls = connects_by(settings)
    return connect(url, connect_timeout_s=timeout_s, read_timeout_s=timeout_s, ack_copies=copies, tls=tls)


def queue_rules(settings: GatewaySettings, state: State, *, refused: prometheus_client.Counter) -> QueueRules:
    """Return the rules; ``refused`` counts by queue and reason."""
    room = Room(state, share=settings.redis_full_share, tenant_share=settings.tenant_queue_share)
    return QueueRules(
        weights_of(settings.tenant_weights), room, lambda queue, reason: refused.labels(queue, reason).inc()
    )
