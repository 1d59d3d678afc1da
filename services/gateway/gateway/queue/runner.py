"""Takes the jobs of one lane queue and sees every one of them to an end.

A run of a job ends in one of these ways:

* done: its record is written and its lane goes on;
* an *outage* (engine, store or Redis cannot be reached, time out, answer 5xx or 429, or refuse our key): nobody's
  fault, so no attempt is counted; tried again after 1, 2, 4 … 60 s, up to ``outages`` times (about half a day);
* a *failure* (the model's output, a request that is refused, a fault of ours): counted; tried again after 1, 2, 4 … s;
  after ``attempts`` of them the job becomes a dead letter: its event says ``failed``, it is never dropped silently;
* the lane was lost, or the worker stops: the job goes back uncounted;
* the worker dies: its ticket goes to another worker once it lay idle; after ``crashes`` of these, a dead letter.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from gateway.queue.handling import Handler, JobResult, LeaseHold
from gateway.queue.lanes import Counter, JobCancelled, JobGone, LaneLost, LaneQueue, Lease
from gateway.queue.tickets import Ticket
from gateway.redis.key_names import Partition
from memloop.wire.correlation import request_id
from memloop.wire.errors import (
    Conflict,
    DependencyError,
    EngineError,
    Forbidden,
    MemloopError,
    RateLimited,
    Unauthenticated,
)
from memloop_service.tracing import span

_LOG = logging.getLogger(__name__)
_OURS_TO_MEND = frozenset({401, 403, 404, 408, 429})


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How a queue is worked. ``lease_s`` and ``idle_s`` bound how long a dead worker's job waits."""

    concurrency: int
    lease_s: float
    idle_s: float
    attempts: int
    outages: int = 1000
    crashes: int = 10
    retry_s: float = 1.0
    max_delay_s: float = 60.0
    poll_s: float = 1.0
    stop_s: float = 10.0

    @property
    def beat_s(self) -> float:
        """Seconds between two signs of life of a job."""
        return min(self.lease_s / 4, self.idle_s / 4, 1.0)


class Runner:
    """Works one queue with one handler until it is told to stop."""

    def __init__(self, queue: LaneQueue, handler: Handler, options: RunnerOptions, *, consumer: str) -> None:
        self._queue = queue
        self._handler = handler
        self._options = options
        self._consumer = consumer
        self._slots = asyncio.Semaphore(options.concurrency)
        self._ensuring = asyncio.Lock()
        self._has_group = False
        self._running: dict[Ticket, asyncio.Task[None]] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Take jobs until ``stop`` is set; then give running jobs ``stop_s`` seconds, and the rest back."""
        async with asyncio.TaskGroup() as group:
            for partition in self._queue.keys.partitions:
                group.create_task(self._repeat(stop, partial(self._take, partition), group))
            group.create_task(self._repeat(stop, self._reclaim, group))
            group.create_task(self._repeat(stop, self._promote, group))
            await stop.wait()
            if self._running:
                await asyncio.wait(self._running.values(), timeout=self._options.stop_s)
            for task in self._running.values():
                task.cancel()

    async def _repeat(self, stop: asyncio.Event, step: "_Step", group: asyncio.TaskGroup) -> None:
        """One step after another; a Redis that is gone is waited for."""
        while not stop.is_set():
            try:
                await self._ensure_group()
                await step(stop, group)
            except DependencyError as error:
                self._has_group = False
                _LOG.warning("queue %s: %s", self._queue.name, error.message)
                await _pause(stop, self._options.poll_s)

    async def _ensure_group(self) -> None:
        async with self._ensuring:
            if not self._has_group:
                await self._queue.ensure_group()
                self._has_group = True

    async def _take(self, partition: Partition, stop: asyncio.Event, group: asyncio.TaskGroup) -> None:
        async with self._slots:
            pass
        if not stop.is_set():
            block_ms = int(self._options.poll_s * 1000)
            ticket = await self._queue.take(self._consumer, block_ms=block_ms, partition=partition)
            if ticket is not None and (stop.is_set() or self._slots.locked()):
                await self._queue.pass_back(ticket)
            elif ticket is not None:
                await self._start(ticket, stop, group)

    async def _reclaim(self, stop: asyncio.Event, group: asyncio.TaskGroup) -> None:
        """A dead worker's tickets one by one while there are any and room for them; else a look now and then."""
        idle_ms = int(self._options.idle_s * 1000)
        full = self._slots.locked()
        stale = [] if full else await self._queue.claim_stale(self._consumer, idle_ms=idle_ms, count=1)
        for ticket in stale:
            await self._start(ticket, stop, group)
        if not stale:
            await _pause(stop, self._options.idle_s / 10)

    async def _promote(self, stop: asyncio.Event, group: asyncio.TaskGroup) -> None:
        del group
        next_s = await self._queue.promote_due()
        await _pause(stop, min(next_s, self._options.poll_s))

    async def _start(self, ticket: Ticket, stop: asyncio.Event, group: asyncio.TaskGroup) -> None:
        if ticket in self._running:
            return
        await self._slots.acquire()
        if stop.is_set():
            self._slots.release()
            await self._hand_on(self._queue.begin(ticket, lease_ms=self._lease_ms))
            return
        task = group.create_task(self._work(ticket))
        self._running[ticket] = task
        task.add_done_callback(lambda _: self._ended(ticket))

    def _ended(self, ticket: Ticket) -> None:
        del self._running[ticket]
        self._slots.release()

    async def _work(self, ticket: Ticket) -> None:
        """One ticket, to its end. When Redis is gone the ticket stays pending and is claimed again later."""
        try:
            lease = await self._begun(ticket)
            if lease is not None:
                await self._traced(lease)
        except DependencyError as error:
            _LOG.warning("queue %s, ticket %s: %s", self._queue.name, ticket.id, error.message)
        except Exception:  # noqa: BLE001 - one job's fault must never end the worker
            _LOG.exception("queue %s, ticket %s: left pending", self._queue.name, ticket.id)

    async def _begun(self, ticket: Ticket) -> Lease | None:
        """The lease. When the worker stops just then, it is given back: Redis may have granted it already."""
        begun = asyncio.ensure_future(self._queue.begin(ticket, lease_ms=self._lease_ms))
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError:
            await asyncio.shield(self._hand_on(begun))
            raise

    async def _hand_on(self, begun: Awaitable[Lease | None]) -> None:
        with suppress(DependencyError):
            lease = await begun
            if lease is not None:
                await self._queue.abandon(lease)

    async def _traced(self, lease: Lease) -> None:
        """The job, in the logs and the trace of the request that queued it."""
        request_id.set(lease.origin.request_id)
        parent = {"traceparent": lease.origin.traceparent}
        told = {"memloop.job": lease.job_id, "memloop.start": lease.starts}
        with span(f"job {self._queue.name}", told, kind="consumer", parent=parent):
            await self._do(lease)

    async def _do(self, lease: Lease) -> None:
        try:
            if lease.crashes > self._options.crashes:
                return await self._bury(lease, MemloopError(f"Workers died {lease.crashes} times at this job."))
            ending = await self._beating(lease, self._run(lease))
        except (LaneLost, JobGone):
            await self._queue.abandon(lease)
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(lease))
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the job is counted and tried again
            await self._failed(lease, error)
        else:
            await self._queue.finish(lease, status=ending.status, record=ending.record, keep_ms=ending.keep_ms)

    async def _run(self, lease: Lease) -> JobResult:
        try:
            return await self._handler.run(lease, self._hold(lease))
        except JobCancelled:
            return await self._handler.cancelled(lease)

    async def _give_back(self, lease: Lease) -> None:
        with suppress(DependencyError):
            await self._queue.abandon(lease)

    async def _failed(self, lease: Lease, error: Exception) -> None:
        """Count it, and have the job tried again or made a dead letter."""
        if isinstance(error, Conflict):
            return await self._queue.abandon(lease)
        counter: Counter = "outages" if is_outage(error) else "failures"
        earlier = lease.outages if counter == "outages" else lease.failures
        limit = self._options.outages if counter == "outages" else self._options.attempts
        problem = error if isinstance(error, MemloopError) else MemloopError(f"{type(error).__name__}: {error}")
        _LOG.warning(
            "job %s: %s %d of %d",
            lease.job_id,
            counter,
            earlier + 1,
            limit,
            exc_info=None if isinstance(error, MemloopError) else error,
        )
        if earlier + 1 >= limit:
            return await self._bury(lease, problem)
        delay_ms = int(1000 * self._delay_s(earlier))
        await self._queue.retry(lease, counter=counter, delay_ms=delay_ms, error=problem.message)
        return None

    async def _bury(self, lease: Lease, error: MemloopError) -> None:
        try:
            ending = await self._handler.give_up(lease, error, attempts=lease.failures + 1)
        except JobGone:
            return await self._queue.abandon(lease)
        await self._queue.finish(
            lease, status=ending.status, record=ending.record, keep_ms=ending.keep_ms, dead=error.message
        )
        return None

    async def _beating(self, lease: Lease, work: Coroutine[Any, Any, JobResult]) -> JobResult:
        """The work's ending. The lease is renewed meanwhile; when it is lost or the job cancelled, the work stops."""
        hold = self._hold(lease)
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({task}, timeout=self._options.beat_s))[0]:
                with suppress(DependencyError):
                    await hold.check()
            return task.result()
        except JobCancelled:
            await _stopped(task)
            return await self._handler.cancelled(lease)
        finally:
            await _stopped(task)

    def _hold(self, lease: Lease) -> LeaseHold:
        return LeaseHold(self._queue, lease, self._consumer, self._lease_ms)

    @property
    def _lease_ms(self) -> int:
        return int(self._options.lease_s * 1000)

    def _delay_s(self, earlier: int) -> float:
        """Doubling, with up to a quarter more so that lanes do not come back all at once."""
        return min(self._options.retry_s * 2 ** min(earlier, 16), self._options.max_delay_s) * random.uniform(1.0, 1.25)


class _Step(Protocol):
    async def __call__(self, stop: asyncio.Event, group: asyncio.TaskGroup, /) -> None: ...


def is_outage(error: Exception) -> bool:
    """Whether the failure says nothing about the job: a dependency is down, overloaded, or refuses our own key."""
    if isinstance(error, EngineError):
        return not 400 <= error.engine_status < 500 or error.engine_status in _OURS_TO_MEND
    return isinstance(error, DependencyError | RateLimited | Unauthenticated | Forbidden)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


async def _stopped(task: "asyncio.Task[Any]") -> None:
    """Cancel the task and wait until it is over."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
