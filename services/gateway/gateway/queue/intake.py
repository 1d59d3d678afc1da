"""Takes a queue's lanes while there are free slots, and runs each in its own task."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from memloop.wire.errors import DependencyError
from memloop_state.queue.jobs import Ticket
from memloop_state.queue.lanes import LaneQueue
from memloop_state.steps import Partition

_LOG = logging.getLogger(__name__)

OnTicket: TypeAlias = Callable[[Ticket], Awaitable[None]]
_Step: TypeAlias = Callable[[], Awaitable[None]]
_SPARE_LOOK_S = 0.2
_Find: TypeAlias = Callable[[], Awaitable[Ticket | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeOptions:
    """How tickets are taken. After ``idle_s`` without a heartbeat another worker claims a worker's tickets.

    While ``concurrency`` jobs run, ``spare`` more may: of tenants that have no job running here. A tenant whose jobs
    fill all slots thus does not make another one wait for the first of them to end.
    """

    concurrency: int
    idle_s: float
    spare: int = 1
    poll_s: float = 1.0
    stop_s: float = 10.0


class Intake:
    """Takes tickets from one queue: new ones, those of dead workers, and those whose delay has elapsed.

    ``work`` runs in a task per ticket, ``concurrency`` of them at a time. ``decline`` gets a dead worker's ticket that
    was claimed just before the stop.
    """

    def __init__(
        self, queue: LaneQueue, options: IntakeOptions, *, consumer: str, work: OnTicket, decline: OnTicket
    ) -> None:
        self._queue = queue
        self._options = options
        self._consumer = consumer
        self._work = work
        self._decline = decline
        self._stop = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._spare = asyncio.Semaphore(options.spare)
        self._ensuring = asyncio.Lock()
        self._has_group = False
        self._running: dict[Ticket, asyncio.Task[None]] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Take tickets until ``stop`` is set. Running work then gets ``stop_s`` seconds before it is cancelled."""
        self._stop = stop
        async with self._group as group:
            for partition in self._queue.keys.partitions:
                group.create_task(self._repeat(partial(self._take, partition)))
                group.create_task(self._repeat(partial(self._take_spare, partition)))
            group.create_task(self._repeat(self._reclaim))
            group.create_task(self._repeat(self._promote))
            await stop.wait()
            if self._running:
                await asyncio.wait(self._running.values(), timeout=self._options.stop_s)
            for task in self._running.values():
                task.cancel()

    async def _repeat(self, step: _Step) -> None:
        """Repeat a step until the stop; pause while the state is unreachable."""
        while not self._stop.is_set():
            try:
                async with self._ensuring:
                    if not self._has_group:
                        await self._queue.ensure_group()
                        self._has_group = True
                await step()
            except DependencyError as error:
                self._has_group = False
                _LOG.warning("queue %s: %s", self._queue.name, error.message)
                await self._pause(self._options.poll_s)

    async def _take(self, partition: Partition) -> None:
        """Start the partition's next lane in a free slot, or wait for one.

        The slot comes first: a lane is taken only when it can begin, in the order that holds at that moment. Of several
        partitions each gets a slot in turn.
        """
        ticket = await self._in(self._slots, partial(self._queue.take, self._consumer, partition=partition))
        if ticket is None and not self._stop.is_set():
            await self._queue.wait(block_ms=int(self._options.poll_s * 1000), partition=partition)

    async def _take_spare(self, partition: Partition) -> None:
        """Start one more lane while all slots are busy, of a tenant without a running job; pause when there is none."""

        async def of_another() -> Ticket | None:
            running = {ticket.tenant for ticket in self._running}
            return await self._queue.take(self._consumer, partition=partition, passing=running)

        is_full = self._slots.locked() and not self._spare.locked()
        if not is_full or await self._in(self._spare, of_another) is None:
            await self._pause(_SPARE_LOOK_S)

    async def _reclaim(self) -> None:
        """Start one dead worker's ticket; pause when there is none."""

        async def stale() -> Ticket | None:
            idle_ms = int(self._options.idle_s * 1000)
            return next(iter(await self._queue.claim_stale(self._consumer, idle_ms=idle_ms, count=1)), None)

        if await self._in(self._slots, stale) is None:
            await self._pause(self._options.idle_s / 10)

    async def _promote(self) -> None:
        """Let lanes wait for a worker whose delay has elapsed, and wait for the next one."""
        next_s = await self._queue.promote_due()
        await self._pause(min(next_s, self._options.poll_s))

    async def _in(self, slots: asyncio.Semaphore, find: _Find) -> Ticket | None:
        """Look for a ticket once a slot is free, and run it there. Returns None without one."""
        await slots.acquire()
        ticket = None
        try:
            ticket = None if self._stop.is_set() else await find()
        finally:
            if ticket is None or ticket in self._running:
                slots.release()
        if ticket is not None and ticket not in self._running:
            await self._start(ticket, slots)
        return ticket

    async def _start(self, ticket: Ticket, slots: asyncio.Semaphore) -> None:
        """Run the ticket's job in the slot that the caller holds."""
        if self._stop.is_set():
            slots.release()
            await self._decline(ticket)
            return

        def ended(_: object) -> None:
            del self._running[ticket]
            slots.release()

        task = self._running[ticket] = self._group.create_task(self._guarded(ticket))
        task.add_done_callback(ended)

    async def _guarded(self, ticket: Ticket) -> None:
        """Run the ticket's job. If it raises, the ticket stays pending and is claimed again later."""
        try:
            await self._work(ticket)
        except DependencyError as error:
            _LOG.warning("queue %s, ticket %s: %s", self._queue.name, ticket.id, error.message)
        except Exception:  # noqa: BLE001 - one job's fault must never end the worker
            _LOG.exception("queue %s, ticket %s: left pending", self._queue.name, ticket.id)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but no longer than until the stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()
