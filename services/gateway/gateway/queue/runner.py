"""Runs the jobs of one lane queue and brings each to a final state.

A run of a job ends in one of these ways:

* done: its record is written and its lane goes on;
* an *outage* (engine, store or state is unreachable, times out, answers 5xx or 429, or rejects our key): not the job's
  fault, so not counted as an attempt; retried after 1, 2, 4 … 60 s, up to ``outages`` times (about half a day);
* a *failure* (invalid model output, a rejected request, a bug of ours): counted; retried after 1, 2, 4 … s; after
  ``attempts`` of them the job becomes a dead letter and its event gets the status ``failed``;
* the lane was lost, or the worker stops: the job returns to the queue uncounted;
* the worker dies: another worker claims its lane; after ``crashes`` of these the job becomes a dead letter.

``Runner`` brings a leased job to its end; ``Intake`` takes the lanes while there are free slots, and runs each in a
task of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

from opentelemetry.trace import SpanKind

from gateway.queue.handling import JobCancelled, JobResult, LaneLost, RunnerOptions, is_outage
from memloop.chores import watched
from memloop.wire.base import request_id, spender
from memloop.wire.errors import Conflict, DependencyError, MemloopError
from memloop_service.tracing import span
from memloop_state.queue.jobs import Counter, JobGone, Lease, Worker
from memloop_state.queue.lanes import LaneQueue
from memloop_state.steps import Partition

_LOG = logging.getLogger(__name__)
_SPARE_LOOK_S: Final = 0.2
_Step: TypeAlias = Callable[[], Awaitable[None]]
_Result = TypeVar("_Result")
_Find: TypeAlias = Callable[[], Awaitable[Lease | None]]


@dataclass(frozen=True, slots=True)
class Hold:
    """The running job's hold on its lane, by its lease."""

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


class Runner:
    """Runs one queue's jobs with one handler until it is stopped."""

    def __init__(self, queue: LaneQueue, handler: Handler, options: RunnerOptions, *, worker: str) -> None:
        self._queue = queue
        self._handler = handler
        self._options = options
        self._worker = options.worker(worker)
        self._beat_s = min(options.lease_s / 4, options.idle_s / 4, 1.0)

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
            status, record, keep_ms = ending.status, ending.record, ending.keep_ms
            if not await self._queue.finish(lease, status=status, record=record, keep_ms=keep_ms) and ending.if_lost:
                await ending.if_lost()

    async def _under_lease(self, lease: Lease) -> JobResult:
        """Run the handler while renewing the lease; stop it when the lease is lost or the job is cancelled."""
        hold = Hold(self._queue, lease)
        try:
            return await watched(self._handler.run(lease, hold), check=hold.check, every_s=self._beat_s)
        except JobCancelled:
            return await self._handler.cancelled(lease)

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


class Intake:
    """Takes lanes of one queue: those that wait, those of dead workers, and those whose delay has elapsed.

    ``work`` runs in a task per lease, ``concurrency`` of them at a time.
    """

    def __init__(
        self, queue: LaneQueue, options: RunnerOptions, *, worker: Worker, work: Callable[[Lease], Awaitable[None]]
    ) -> None:
        self._queue = queue
        self._options = options
        self._worker = worker
        self._work = work
        self._stop = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._spare = asyncio.Semaphore(options.spare)
        self._running: dict[asyncio.Task[None], Lease] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Take lanes until ``stop`` is set. Running work then gets ``stop_s`` seconds before it is cancelled."""
        self._stop = stop

        async def promote() -> None:
            """Let lanes wait for a worker whose delay has elapsed, and wait for the next one."""
            await self._pause(min(await self._queue.promote_due(), self._options.poll_s))

        async with self._group as group:
            for partition in self._queue.keys.partitions:
                group.create_task(self._repeat(partial(self._take, partition)))
                group.create_task(self._repeat(partial(self._take_spare, partition)))
            group.create_task(self._repeat(self._reclaim))
            group.create_task(self._repeat(promote))
            await stop.wait()
            if self._running:
                await asyncio.wait(self._running, timeout=self._options.stop_s)
            for task in self._running:
                task.cancel()

    async def _repeat(self, step: _Step) -> None:
        """Repeat a step until the stop; pause while the state is unreachable."""
        while not self._stop.is_set():
            try:
                await step()
            except DependencyError as error:
                _LOG.warning("queue %s: %s", self._queue.name, error.message)
                await self._pause(self._options.poll_s)

    async def _take(self, partition: Partition) -> None:
        """Start the partition's next lane in a free slot, or wait for one.

        The slot comes first: a lane is taken only when it can begin, in the order that holds at that moment. Of several
        partitions each gets a slot in turn.
        """
        lease = await self._in(self._slots, partial(self._queue.take, self._worker, partition=partition))
        if lease is None and not self._stop.is_set():
            await self._queue.wait(block_ms=int(self._options.poll_s * 1000), partition=partition)

    async def _take_spare(self, partition: Partition) -> None:
        """Start one more lane while all slots are busy, of a tenant without a running job; pause when there is none."""

        async def of_another() -> Lease | None:
            running = {lease.tenant for lease in self._running.values()}
            return await self._queue.take(self._worker, partition=partition, passing=running)

        is_full = self._slots.locked() and not self._spare.locked()
        if not is_full or await self._in(self._spare, of_another) is None:
            await self._pause(_SPARE_LOOK_S)

    async def _reclaim(self) -> None:
        """Start one dead worker's lane; pause when there is none."""

        async def stale() -> Lease | None:
            return await self._queue.claim(self._worker, running=[lease.lane for lease in self._running.values()])

        if await self._in(self._slots, stale) is None:
            await self._pause(self._options.idle_s / 10)

    async def _in(self, slots: asyncio.Semaphore, find: _Find) -> Lease | None:
        """Look for a job once a slot is free, and run it there. Returns None without one."""
        await slots.acquire()
        lease = None
        try:
            lease = None if self._stop.is_set() else await find()
        finally:
            if lease is None or self._stop.is_set():
                slots.release()
        if lease is None:
            return None
        if self._stop.is_set():
            await self._queue.abandon(lease)
            return lease

        def ended(task: asyncio.Task[None]) -> None:
            del self._running[task]
            slots.release()

        task = self._group.create_task(self._guarded(lease))
        self._running[task] = lease
        task.add_done_callback(ended)
        return lease

    async def _guarded(self, lease: Lease) -> None:
        """Run the job. If that raises, its lane stays held and is claimed again later."""
        try:
            await self._work(lease)
        except DependencyError as error:
            _LOG.warning("queue %s, job %s: %s", self._queue.name, lease.job_id, error.message)
        except Exception:  # noqa: BLE001 - one job's fault must never end the worker
            _LOG.exception("queue %s, job %s: left to be claimed", self._queue.name, lease.job_id)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but no longer than until the stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()
