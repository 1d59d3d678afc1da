"""Runs the jobs of one lane queue and brings each to a final state.

A run of a job ends in one of these ways:

* done: its record is written and its lane goes on;
* an *outage* (engine, store or state is unreachable, times out, answers 5xx or 429, or rejects our key): not the job's
  fault, so not counted as an attempt; retried after 1, 2, 4 … 60 s, up to ``outages`` times (about half a day);
* a *failure* (invalid model output, a rejected request, a bug of ours): counted; retried after 1, 2, 4 … s; after
  ``attempts`` of them the job becomes a dead letter and its event gets the status ``failed``;
* the lane was lost, or the worker stops: the job returns to the queue uncounted;
* the worker dies: another worker claims its lane; after ``crashes`` of these the job becomes a dead letter.

``Intake`` takes the lanes. ``_settle`` records the result of each job, and ``_under_lease`` runs the handler while it
renews the lease.
"""

import asyncio
import logging
import random
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import prometheus_client
from opentelemetry.trace import SpanKind

from gateway.queue.intake import Intake, IntakeOptions
from gateway.settings import GatewaySettings, weights_of
from memloop.loops.journal import dump_completion, load_completion
from memloop.ports import Completion
from memloop.wire.base import Wire, request_id, spender
from memloop.wire.errors import (
    Conflict,
    ContextTruncated,
    DependencyError,
    EngineError,
    Forbidden,
    MemloopError,
    RateLimited,
    Unauthenticated,
    UnreadableAnswer,
)
from memloop_service import connects_by
from memloop_service.tracing import span
from memloop_state.connecting import connect
from memloop_state.link import State
from memloop_state.queue.jobs import Counter, JobGone, Lease, Worker
from memloop_state.queue.lanes import LaneQueue
from memloop_state.queue.records import JobRecords, Journal
from memloop_state.room import QueueRules, Room


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


class JobCancelled(Exception):
    """The client cancelled the job."""


class LaneLost(Exception):
    """The lease has expired: another holder has the lane, and this one must write nothing more."""


@dataclass(frozen=True, slots=True)
class JournalCheckpoints:
    """A loop's ``Checkpoints`` in a job's journal. ``scope`` separates the loops of one job."""

    journal: Journal
    scope: str

    async def load(self, key: str) -> Completion | None:
        """Return the reply stored under the key, or None."""
        value = await self.journal.read(f"call:{self.scope}:{key}")
        return None if value is None else load_completion(value)

    async def save(self, key: str, completion: Completion) -> None:
        """Store the reply. Raises JobGone, Unavailable."""
        await self.journal.keep(f"call:{self.scope}:{key}", dump_completion(completion).decode())


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


_Job = TypeVar("_Job", bound=Wire)


async def job_of(lease: Lease, jobs: JobRecords, kind: type[_Job]) -> _Job:
    """Return the payload of a leased job. Raises JobGone when the job is over or deleted."""
    if (job := await jobs.payload(lease.job_id, kind)) is None:
        raise JobGone(lease.job_id)
    return job


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


_LOG = logging.getLogger(__name__)
_OURS_TO_MEND = frozenset({401, 403, 404, 408, 429})


@dataclass(frozen=True, slots=True)
class LeaseHold:
    """A hold backed by the job's lease."""

    queue: LaneQueue
    lease: Lease

    @property
    def token(self) -> int:
        """The lane's fencing token."""
        return self.lease.token

    async def check(self) -> None:
        """Renew the lease. Raises LaneLost, JobCancelled."""
        beat = await self.queue.beat(self.lease)
        if beat == "lost":
            raise LaneLost
        if beat == "cancel":
            raise JobCancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions(IntakeOptions):
    """How a queue is worked. ``lease_s`` and ``idle_s`` bound how long a dead worker's job waits."""

    lease_s: float
    attempts: int
    outages: int = 1000
    crashes: int = 10
    retry_s: float = 1.0
    max_delay_s: float = 60.0

    @property
    def beat_s(self) -> float:
        """Seconds between two renewals of a lease."""
        return min(self.lease_s / 4, self.idle_s / 4, 1.0)

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


class Runner:
    """Runs one queue's jobs with one handler until it is stopped."""

    def __init__(self, queue: LaneQueue, handler: Handler, options: RunnerOptions, *, worker: str) -> None:
        self._queue = queue
        self._handler = handler
        self._options = options
        self._worker = options.worker(worker)

    async def run(self, stop: asyncio.Event) -> None:
        """Run jobs until ``stop`` is set; give running ones ``stop_s`` seconds, then requeue the rest."""
        await Intake(self._queue, self._options, worker=self._worker, work=self.work).run(stop)

    async def work(self, lease: Lease) -> None:
        """Run the job. On cancellation, requeue it."""
        request_id.set(lease.origin.request_id)
        spender.set(lease.tenant)
        parent = {"traceparent": lease.origin.traceparent}
        attributes = {"memloop.job": lease.job_id, "memloop.start": lease.starts}
        try:
            with span(f"job {self._queue.name}", attributes, kind=SpanKind.CONSUMER, parent=parent):
                await self._settle(lease)
        except asyncio.CancelledError:
            with suppress(DependencyError):
                await asyncio.shield(self._queue.abandon(lease))
            raise

    async def _settle(self, lease: Lease) -> None:
        """Run the job and record the result: finished, requeued, retried later, or a dead letter."""
        try:
            # Earlier runs that ended without a result
            crashes = lease.starts - 1 - lease.failures - lease.outages
            if crashes > self._options.crashes:
                return await self._bury(lease, MemloopError(f"The worker died {crashes} times running this job."))
            ending = await self._under_lease(lease)
        except (LaneLost, JobGone, Conflict):
            await self._queue.abandon(lease)
        except Exception as error:  # noqa: BLE001 - any error counts as an attempt and is retried
            await self._retry(lease, error)
        else:
            await self._queue.finish(lease, status=ending.status, record=ending.record, keep_ms=ending.keep_ms)

    async def _under_lease(self, lease: Lease) -> JobResult:
        """Run the handler while renewing the lease; stop it when the lease is lost or the job is cancelled."""
        hold = LeaseHold(self._queue, lease)
        work = asyncio.ensure_future(self._handler.run(lease, hold))
        try:
            while not (await asyncio.wait({work}, timeout=self._options.beat_s))[0]:
                with suppress(DependencyError):
                    await hold.check()
            return work.result()
        except JobCancelled:
            await _stopped(work)
            return await self._handler.cancelled(lease)
        finally:
            await _stopped(work)
            del work  # it holds the handler's error, whose traceback holds this frame

    async def _retry(self, lease: Lease, error: Exception) -> None:
        """Count the failure or outage; retry the job later, or make it a dead letter after the last attempt."""
        counter: Counter = "outages" if is_outage(error) else "failures"
        earlier = lease.outages if counter == "outages" else lease.failures
        limit = self._options.outages if counter == "outages" else self._options.attempts
        problem = error if isinstance(error, MemloopError) else MemloopError(f"{type(error).__name__}: {error}")
        trace = None if problem is error else error
        _LOG.warning("job %s: %s %d of %d", lease.job_id, counter, earlier + 1, limit, exc_info=trace)
        if self._options.is_last(lease, error):
            return await self._bury(lease, problem)
        delay_ms = self._options.delay_ms(earlier)
        await self._queue.retry(lease, counter=counter, delay_ms=delay_ms, error=problem.message)
        return None

    async def _bury(self, lease: Lease, error: MemloopError) -> None:
        """Make the job a dead letter."""
        try:
            ending = await self._handler.give_up(lease, error, attempts=lease.failures + 1)
        except JobGone:
            return await self._queue.abandon(lease)
        await self._queue.finish(
            lease,
            status=ending.status,
            record=ending.record,
            keep_ms=ending.keep_ms,
            dead=error.message,
            keeps_work=ending.keeps_work,
        )
        return None


def is_outage(error: Exception) -> bool:
    """Return whether a dependency is at fault, not the job: it is down, overloaded, or rejects our own key."""
    if isinstance(error, ContextTruncated | UnreadableAnswer):
        return False
    if isinstance(error, EngineError):
        return not 400 <= error.engine_status < 500 or error.engine_status in _OURS_TO_MEND
    return isinstance(error, DependencyError | RateLimited | Unauthenticated | Forbidden)


async def _stopped(task: "asyncio.Future[Any]") -> None:
    """Cancel the task and wait until it has ended."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
