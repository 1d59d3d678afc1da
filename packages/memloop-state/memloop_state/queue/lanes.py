"""Durable job lanes: the jobs of one lane run one at a time, in queue order, exactly once.

A lane is a Redis list of job ids. A lane with jobs waits for a worker (``lua/turns.lua`` takes the next one), waits
for its delay, or has a *ticket*: an entry of the stream ``memloop:jobs:{queue}``, written when a worker takes the lane.
The holder of the lane's lock runs the job at the list's head. One atomic step ends the job, acknowledges its ticket,
frees the lock and, if the list has more, lets the lane wait again:

* one script writes a job and its event record and lets its lane wait: once it returns, the job is durable;
* a ticket for a lane that is held or delayed is dropped: the holder's own ticket is still pending, and the delayed lane
  waits for a worker again when its delay has elapsed;
* a dead worker's ticket stays pending; after its idle time another worker claims it with XAUTOCLAIM. The owner of the
  holder's ticket may take over the lock, with a higher fencing token.

The lock is ``SET PX`` with a fencing token from one counter for all lanes. The holder's heartbeat renews it and resets
the ticket's idle time; every step of the holder compares the lock's value first.

A queue has *partitions*: one on a single Redis, more in a cluster. All keys of a lane and its jobs are in one partition
and so in one slot (``memloop_state.steps``). Each partition has its own stream, token counter and dead
letters.
"""

import math
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Any, cast

from memloop.wire.base import Origin
from memloop.wire.errors import Erased, RateLimited
from memloop_state.link import State, all_sent, sent
from memloop_state.owners import owned_args, owned_keys
from memloop_state.queue.jobs import (
    DEFAULT_TIER,
    GROUP,
    Beat,
    Counter,
    Depth,
    Entry,
    GuardBroken,
    IndexFull,
    Lease,
    Submission,
    Ticket,
    Tickets,
    delayed,
    ready,
)
from memloop_state.queue.records import DeadLetter, Events, JobRecords, Journal, read_dead_letters
from memloop_state.room import QueueRules
from memloop_state.steps import Partition, Partitions, lane_steps, text
from memloop_state.values import UNGUARDED, Guard, Indexes, Streams

KEEP_MS = 7 * 24 * 3600 * 1000
"""Default retention of a finished job's record."""
_OVER_QUOTA = -1
_ERASED = -2
_GUARD_BROKEN = -3
_INDEX_FULL = -4
_TOO_MUCH = "This tenant's queued jobs hold as many bytes as they may: wait until some are done."
_RETRY_AFTER_S = 10.0


class LaneQueue:
    """One queue of lanes. Every method raises Unavailable when Redis is unreachable."""

    def __init__(
        self,
        redis: State,
        name: str,
        *,
        keep_ms: int = KEEP_MS,
        tiers: Sequence[str] = (DEFAULT_TIER,),
        rules: QueueRules | None = None,
        index_ends: bool = False,
    ) -> None:
        """``index_ends``: a job's index ends with the last of its jobs, because it is one of very many."""
        self._redis: Any = redis
        self.name = name
        self.keep_ms = keep_ms
        self._index_ends = int(index_ends)
        self.rules = rules or QueueRules()
        self.keys = Partitions(redis)
        self.jobs = JobRecords(redis)
        self.events = Events(redis)
        self.indexes = Indexes(redis)
        self._tickets = {part: Tickets(redis, part, name, tiers, self.rules.weights) for part in self.keys.partitions}
        self._step = lane_steps(redis)

    def _lane_keys(self, part: Partition, lane: str) -> list[str]:
        stream = self._tickets[part].stream_of(lane)
        return [
            stream,
            delayed(stream),
            part.key("open", self.name),
            part.key("lane", self.name, lane),
            part.key("lock", self.name, lane),
            ready(stream),
            part.key("turns", self.name),
            part.key("since", self.name),
            part.key("bell", self.name),
            part.key("queued-bytes"),
        ]

    def _held_keys(self, lease: Lease) -> tuple[Partition, list[str]]:
        part = self.keys.of_id(lease.job_id)
        return part, [*self._lane_keys(part, lease.ticket.lane), part.job(lease.job_id)]

    async def admit(self, job: Submission, *, guard: Guard | None = None) -> bool:
        """Queue a client's job if the rules allow it, as :meth:`submit` does.

        Raises RateLimited when the tenant's queued jobs would hold more than its quota, Unavailable while Redis is
        nearly full or unreachable, and GuardBroken if ``guard`` is and the job is not queued.
        """
        with self.rules.counted(self.name):
            return await self.submit(job, quota_bytes=await self.rules.quota_bytes(), guard=guard)

    async def submit(self, job: Submission, *, quota_bytes: int = 0, guard: Guard | None = None) -> bool:
        """Queue the job. Returns True once it is durable, False if a job of that id already exists.

        With ``quota_bytes`` the tenant's queued jobs in the job's partition may hold that much, or be one job. Raises
        RateLimited when they would hold more, and Erased when one of its owners was erased after the work on it began.
        """
        keys, args = self.entry(job, quota_bytes=quota_bytes)
        if guard is None:
            entered = await self._step.number("submit", keys, args, acknowledged=True)
        else:
            entered = await self._step.number(
                "submit_guarded", [guard.key, *keys], [*guard.args, *args], acknowledged=True
            )
        if entered == _GUARD_BROKEN:
            raise GuardBroken
        if entered == _ERASED:
            raise Erased
        if entered == _INDEX_FULL:
            raise IndexFull
        if entered == _OVER_QUOTA:
            raise RateLimited(_TOO_MUCH, code="queue_quota_exceeded", retry_after_s=_RETRY_AFTER_S)
        return entered > 0

    def entry(self, job: Submission, *, quota_bytes: int = 0) -> Entry:
        """Return the keys and arguments with which a script queues the job."""
        part = self.keys.of_id(job.job_id)
        keys = [*self._lane_keys(part, job.lane), part.job(job.job_id), job.index, *owned_keys(part, job.owners)]
        events = [part.events(job.job_id)] if job.first_event else []
        rules = [quota_bytes, job.index_most, *owned_args(job.owners, kind=job.kind, record_id=job.job_id)]
        fields = {**job.fields, **Origin.here().model_dump()}
        pairs = [value for pair in fields.items() for value in pair]
        return keys + events, [job.job_id, job.lane, job.created_ms, job.first_event, job.tenant, *rules, *pairs]

    async def newest_token(self) -> int:
        """Return a number that no fencing token so far exceeds and every later one does.

        A write that begins now can thus be ordered against the erasures, whose tokens they are. In a cluster it is the
        lowest of all partitions: an erasure right before may count as later.
        """
        return min([await self._step.number("newest", [part.key("fence")], []) for part in self.keys.partitions])

    def journal(self, job_id: str) -> Journal:
        """Return a job's journal."""
        return Journal(self._redis, job_id)

    async def ensure_group(self) -> None:
        """Create missing streams and consumer groups."""
        for tickets in self._tickets.values():
            await tickets.ensure_groups()

    async def take(
        self, consumer: str, *, partition: Partition | None = None, passing: Collection[str] = ()
    ) -> Ticket | None:
        """Take the next lane of a partition (default: the first), or None when none waits; pass over these tenants."""
        return await self._tickets[partition or self.keys.partitions[0]].take(consumer, passing=passing)

    async def wait(self, *, block_ms: int, partition: Partition | None = None) -> None:
        """Wait at most ``block_ms`` until a lane of the partition waits for a worker."""
        await self._tickets[partition or self.keys.partitions[0]].wait(block_ms=block_ms)

    async def claim_stale(self, consumer: str, *, idle_ms: int, count: int) -> list[Ticket]:
        """Claim tickets of one partition whose worker has been silent for ``idle_ms``."""
        for tickets in self._tickets.values():
            if found := await tickets.claim_stale(consumer, idle_ms=idle_ms, count=count):
                return found
        return []

    async def begin(self, ticket: Ticket, *, lease_ms: int) -> Lease | None:
        """Lease the lane's next job. Returns None, and drops the ticket, when the lane has nothing to run now."""
        part = self.keys.of_id(ticket.job_id)
        keys, head = [*self._lane_keys(part, ticket.lane), part.key("fence")], ticket.job_id
        reply = ["head", head]
        while reply[0] == "head":
            head = reply[1]
            reply = await self._step.rows(
                "begin", [*keys, part.job(head)], [GROUP, ticket.id, ticket.lane, lease_ms, head]
            )
        if reply[0] != "run":
            return None
        token, starts, failures, outages, tenant, request_id, traceparent = reply[1:]
        origin = Origin(request_id=request_id, traceparent=traceparent)
        return Lease(ticket, int(token), head, int(starts), int(failures), int(outages), tenant, origin)

    async def beat(self, lease: Lease, *, consumer: str, lease_ms: int) -> Beat:
        """Renew the lock and reset the ticket's idle time. Returns whether the job still has to be done."""
        _, keys = self._held_keys(lease)
        return cast(Beat, await self._step("beat", keys, [GROUP, lease.ticket.id, lease.mine, lease_ms, consumer]))

    async def finish(
        self,
        lease: Lease,
        *,
        status: str,
        record: str,
        keep_ms: int | None,
        dead: str = "",
        keeps_work: bool = False,
    ) -> bool:
        """End the job and free its lane; a ``dead`` error makes it a dead letter.

        ``keep_ms`` is the retention of the record (None: the queue's). 0 keeps it indefinitely, with payload and
        journal. ``keeps_work`` keeps these as long as the record, so that an operator can requeue the job. Returns
        False, and writes nothing, when the lease was lost.
        """
        part, held = self._held_keys(lease)
        journal, changed = part.key("journal", lease.job_id), part.hidden("changed", self.name, lease.ticket.lane)
        keys = [*held, journal, part.key("dead"), changed]
        ids = [GROUP, lease.ticket.id, lease.mine, lease.ticket.lane, lease.job_id]
        kept_ms = self.keep_ms if keep_ms is None else keep_ms
        ending = [status, record, kept_ms, dead, int(keeps_work or not kept_ms), lease.tenant, self._index_ends]
        return await self._step.number("finish", keys, [*ids, *ending]) == 1

    async def retry(self, lease: Lease, *, counter: Counter, delay_ms: int, error: str) -> bool:
        """Free the lane and delay its head by ``delay_ms``. Returns False when the lease was lost."""
        _, keys = self._held_keys(lease)
        args = [GROUP, lease.ticket.id, lease.mine, lease.ticket.lane, counter, delay_ms, error]
        return await self._step.number("retry", keys, args) == 1

    async def abandon(self, lease: Lease) -> None:
        """Return the job to the queue without counting the run."""
        _, keys = self._held_keys(lease)
        await self._step("abandon", keys, [GROUP, lease.ticket.id, lease.mine, lease.ticket.lane, lease.tenant])

    async def promote_due(self) -> float:
        """Let lanes wait whose delay has elapsed. Returns the seconds until the next one (infinity: none)."""
        next_s = math.inf
        for part, tickets in self._tickets.items():
            soonest_ms, *lanes = await self._step.rows("due", [delayed(stream) for stream in tickets.streams], [])
            for lane in lanes:
                await self._step.number("promote", self._lane_keys(part, lane), [lane, await self._tenant(part, lane)])
            next_s = min(next_s, int(soonest_ms) / 1000 if soonest_ms else math.inf)
        return next_s

    async def take_lane(self, lane: str, *, scope: str, lease_ms: int, force: bool) -> int | None:
        """Lock the lane to erase the scope. Returns the fencing token, or None while a job holds the lane.

        From then on jobs of the scope that began before are refused.
        """
        part = self.keys.of_name(lane)
        erased, changed = part.hidden("erased", lane), part.hidden("changed", self.name, lane)
        keys = [*self._lane_keys(part, lane), part.key("fence"), erased, changed]
        token = await self._step("take_lane", keys, [lease_ms, int(force), scope, KEEP_MS])
        return int(cast(str, token)) or None

    async def take_idle_lane(self, lane: str, *, lease_ms: int, guard: Guard | None = None) -> int | None:
        """Lock a lane that has no running or waiting job. Returns the fencing token, or None if it is busy.

        Raises GuardBroken, whether the lane is busy or not, if ``guard`` is.
        """
        part = self.keys.of_name(lane)
        hashed, args = ([guard.key], guard.args) if guard is not None else ([], UNGUARDED)
        keys = [*self._lane_keys(part, lane), part.key("fence"), *hashed]
        token = await self._step.number("take_idle_lane", keys, [lease_ms, *args])
        if token == _GUARD_BROKEN:
            raise GuardBroken
        return token or None

    async def open(self, job: Submission, *, keep_ms: int) -> None:
        """Store a job that no worker runs, for so long. Raises Erased as :meth:`submit` does."""
        part = self.keys.of_id(job.job_id)
        keys = [part.job(job.job_id), job.index, *owned_keys(part, job.owners)]
        owners = owned_args(job.owners, kind=job.kind, record_id=job.job_id)
        pairs = [value for pair in job.fields.items() for value in pair]
        if not await self._step.number("open", keys, [job.job_id, job.created_ms, keep_ms, *owners, *pairs]):
            raise Erased

    async def record(self, job: Submission, token: int) -> bool:
        """Store the record of work done under :meth:`take_idle_lane`'s token for ``keep_ms``, and free the lane.

        Returns False, and writes nothing, when the lane was lost.
        """
        part = self.keys.of_id(job.job_id)
        pairs = [value for pair in job.fields.items() for value in pair]
        args = [f"{token}|erase", job.lane, job.job_id, job.created_ms, self.keep_ms, job.tenant, *pairs]
        keys = [*self._lane_keys(part, job.lane), part.job(job.job_id), job.index]
        return await self._step.number("record", keys, args, acknowledged=True) > 0

    async def leave_lane(self, lane: str, token: int) -> None:
        """Undo :meth:`take_lane` or :meth:`take_idle_lane`."""
        part = self.keys.of_name(lane)
        await self._step(
            "leave_lane", self._lane_keys(part, lane), [f"{token}|erase", lane, await self._tenant(part, lane)]
        )

    async def forget(self, lane: str, job_id: str, *, index: str) -> str | None:
        """Delete the job and its data; a running worker loses its lease. Returns the last status or None."""
        part = self.keys.of_id(job_id)
        own = [part.job(job_id), part.key("journal", job_id), index, part.key("dead"), part.events(job_id)]
        keys = [*self._lane_keys(part, lane), *own]
        return cast("str | None", await self._step("forget", keys, [job_id, lane], acknowledged=True))

    async def requeue(self, lane: str, job_id: str, *, record: str, created_ms: int) -> bool:
        """Requeue a dead letter at the end of its lane with its attempts reset. Returns False if it is not one."""
        return await self._put_back(lane, job_id, [record, created_ms, "", ""])

    async def requeue_ended(
        self, lane: str, job_id: str, *, record: str, created_ms: int, payload: str, status: str, former: str
    ) -> bool:
        """Queue an ended job again, with another payload and an empty journal.

        Returns False, and changes nothing, unless it ended with that status and is recorded as ``former``.
        """
        return await self._put_back(lane, job_id, [record, created_ms, payload, status, former])

    async def _put_back(self, lane: str, job_id: str, args: Sequence[str | int]) -> bool:
        part = self.keys.of_id(job_id)
        keys = [*self._lane_keys(part, lane), part.job(job_id), part.key("journal", job_id), part.key("dead")]
        return await self._step.number("requeue", keys, [job_id, lane, *args], acknowledged=True) == 1

    async def cancel(self, lane: str, job_id: str, *, record: str, keep_ms: int, then: Entry = ((), ())) -> str:
        """End a waiting job with ``record``, or request its worker to: ``cancelled``, ``asked``, ``done`` or ``gone``.

        ``then`` is the :meth:`entry` of a job to queue in the step that ends a waiting one.
        """
        part = self.keys.of_id(job_id)
        keys = [*self._lane_keys(part, lane), part.job(job_id), part.key("journal", job_id), *then[0]]
        return cast(str, await self._step("cancel", keys, [job_id, lane, record, keep_ms, *then[1]], acknowledged=True))

    async def jobs_of(self, lanes: Sequence[str]) -> list[list[str]]:
        """Return the ids of each lane's jobs in one round trip."""
        keys = [self.keys.of_name(lane).key("lane", self.name, lane) for lane in lanes]
        rows = await all_sent(self._redis, [("LRANGE", key, 0, -1) for key in keys])
        return [[text(one) for one in row] for row in rows]

    async def dead_letters(self, part: Partition, *, after: str, count: int) -> list[DeadLetter]:
        """Return the partition's dead letters of all queues, as ``read_dead_letters`` does."""
        return await read_dead_letters(self._redis, part, after=after, count=count)

    async def drop_letter(self, letter: DeadLetter) -> None:
        """Delete a dead letter; its job ends by itself."""
        await Streams(self._redis).delete(self.keys.of_id(letter.job_id).key("dead"), letter.entry)

    async def depth(self) -> Depth:
        """Return the queue's backlog."""
        found: list[Depth] = []
        for part in self.keys.partitions:
            waiting, turns = part.key("open", self.name), part.key("turns", self.name)
            jobs, tenants = await self.indexes.count(waiting), await self.indexes.count(turns)
            created_ms = await self.indexes.lowest(waiting)
            since_us = await self.indexes.lowest(part.key("since", self.name))
            found.append(Depth(jobs, created_ms, since_us and since_us // 1000, tenants))
        return Depth(
            jobs=sum(depth.jobs for depth in found),
            oldest_created_ms=_earliest(depth.oldest_created_ms for depth in found),
            waiting_since_ms=_earliest(depth.waiting_since_ms for depth in found),
            tenants=sum(depth.tenants for depth in found),
        )

    async def lanes_of(self, tenant: str, *, prefix: str) -> AsyncIterator[Sequence[str]]:
        """Yield the tenant's lanes with jobs in pages, one maybe twice; their names begin with ``prefix``."""
        for tickets in self._tickets.values():
            async for lanes in tickets.lanes_of(tenant, prefix=prefix):
                yield lanes

    async def _tenant(self, part: Partition, lane: str) -> str:
        """Return the tenant of the lane's jobs, empty when it has none."""
        head = await sent(self._redis, "LINDEX", part.key("lane", self.name, lane), 0)
        tenant = None if head is None else await sent(self._redis, "HGET", part.job(text(head)), "tenant")
        return "" if tenant is None else text(tenant)


def _earliest(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)
