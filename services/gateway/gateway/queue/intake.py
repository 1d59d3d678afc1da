"""Takes a queue's lanes while there are free slots, and runs each in its own task."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from memloop.wire.errors import DependencyError
from memloop_state.queue.jobs import Lease, Worker
from memloop_state.queue.lanes import LaneQueue
from memloop_state.steps import Partition

_LOG = logging.getLogger(__name__)

_Step: TypeAlias = Callable[[], Awaitable[None]]
_SPARE_LOOK_S = 0.2
_Find: TypeAlias = Callable[[], Awaitable[Lease | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeOptions:
    """How lanes are taken. After ``idle_s`` without a heartbeat another worker claims a worker's lanes.

    While ``concurrency`` jobs run, ``spare`` more may: of tenants that have no job running here. A tenant whose jobs
    fill all slots thus does not make another one wait for the first of them to end.
    """

    concurrency: int
    idle_s: float
    spare: int = 1
    poll_s: float = 1.0
    stop_s: float = 10.0


class Intake:
    """Takes lanes of one queue: those that wait, those of dead workers, and those whose delay has elapsed.

    ``work`` runs in a task per lease, ``concurrency`` of them at a time.
    """

    def __init__(
        self, queue: LaneQueue, options: IntakeOptions, *, worker: Worker, work: Callable[[Lease], Awaitable[None]]
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
        async with self._group as group:
            for partition in self._queue.keys.partitions:
                group.create_task(self._repeat(partial(self._take, partition)))
                group.create_task(self._repeat(partial(self._take_spare, partition)))
            group.create_task(self._repeat(self._reclaim))
            group.create_task(self._repeat(self._promote))
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

    async def _promote(self) -> None:
        """Let lanes wait for a worker whose delay has elapsed, and wait for the next one."""
        next_s = await self._queue.promote_due()
        await self._pause(min(next_s, self._options.poll_s))

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
