"""Durable jobs in lanes: what is queued in one lane is done one after another, in its queue order, exactly once.

A lane is a Redis list of job ids. A *ticket*, an entry of the stream ``memloop:jobs:{queue}``, says "this lane has
work". Whoever holds the lane's lock works on the list's head; its ticket is acknowledged in the same atomic step
that ends the job, frees the lock and, when the list has more, writes the next ticket. So order follows from the
list, and no ticket is ever the only trace of a job:

* a job, its event record and its ticket are written by one script: the job is durable when that returned;
* a ticket for a lane that someone holds, or that waits for its next attempt, is dropped: the holder's own ticket is
  still pending, the delayed lane gets a new one when it is due;
* a worker that dies leaves its ticket pending; it goes to another worker by XAUTOCLAIM once it lay idle, and
  whoever owns the holder's ticket may take the lock over, with a higher fencing token.

The lock is ``SET PX`` with a fencing token from one counter for all lanes, renewed by the holder's heartbeat, which
also resets the ticket's idle time; every step of the holder compares the lock's value first.

A queue has *partitions*: one on a single Redis, more in a cluster. All keys of a lane and of its jobs lie in one, and
so in one slot (``gateway.redis.key_names``); each has its own stream, counter of tokens and dead letters.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from redis.asyncio import Redis

from gateway.queue import scripts as lane_scripts
from gateway.queue.tickets import DEFAULT_TIER, GROUP, Ticket, Tickets
from gateway.redis import Keys, Partition, Script, text
from memloop.wire.correlation import Origin
from memloop_service.redis_link import redis_errors

KEEP_MS = 7 * 24 * 3600 * 1000
"""How long the record of a finished job can be asked for, if nothing else is configured."""
Beat: TypeAlias = Literal["held", "lost", "cancel"]
Counter: TypeAlias = Literal["failures", "outages"]
Entry: TypeAlias = tuple[Sequence[str], Sequence[str | int]]
"""Keys and arguments of a new job."""
_WORTH_A_LOOK = 2
_LOOKED_AT = 32


class JobGone(Exception):
    """The job was erased while it ran."""


class JobCancelled(Exception):
    """The client asked for the job to stop."""


class LaneLost(Exception):
    """The lease is over: another holder has the lane, and nothing may be written any more."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do one job. ``failures`` and ``outages`` count earlier runs, ``starts`` includes this one."""

    ticket: Ticket
    token: int
    job_id: str
    starts: int
    failures: int
    outages: int
    origin: Origin = field(default_factory=Origin)

    @property
    def mine(self) -> str:
        """The lock's value while the lease holds."""
        return f"{self.token}|{self.ticket.id}"

    @property
    def crashes(self) -> int:
        """Earlier runs that ended without a word."""
        return self.starts - 1 - self.failures - self.outages


@dataclass(frozen=True, slots=True)
class Submission:
    """A new job. ``fields`` fill its hash; ``index`` is the sorted set that lists it by time."""

    job_id: str
    lane: str
    created_ms: int
    index: str
    fields: Mapping[str, str]
    events_key: str = ""
    first_event: str = ""


@dataclass(frozen=True, slots=True)
class Depth:
    """Jobs that are not done. Times are in milliseconds since the epoch, None where there is nothing.

    ``waiting_since_ms`` is when the oldest ticket was written that no worker has taken.
    """

    jobs: int
    oldest_created_ms: int | None
    waiting_since_ms: int | None = None


class LaneQueue:
    """One queue of lanes. Every method raises Unavailable when Redis is gone."""

    def __init__(
        self, redis: Redis, name: str, *, keep_ms: int = KEEP_MS, tiers: Sequence[str] = (DEFAULT_TIER,)
    ) -> None:
        self._redis = redis
        self.name = name
        self.keep_ms = keep_ms
        self.keys = Keys(redis)
        self._tickets = {part: Tickets(redis, part.stream(name), tiers) for part in self.keys.partitions}
        self._submit = Script(redis, lane_scripts.SUBMIT)
        self._begin = Script(redis, lane_scripts.BEGIN)
        self._beat = Script(redis, lane_scripts.BEAT)
        self._finish = Script(redis, lane_scripts.FINISH)
        self._retry = Script(redis, lane_scripts.RETRY)
        self._abandon = Script(redis, lane_scripts.ABANDON)
        self._due = Script(redis, lane_scripts.DUE)
        self._promote = Script(redis, lane_scripts.PROMOTE)
        self._take_lane = Script(redis, lane_scripts.TAKE_LANE)
        self._take_idle_lane = Script(redis, lane_scripts.TAKE_IDLE_LANE)
        self._record = Script(redis, lane_scripts.RECORD)
        self._leave_lane = Script(redis, lane_scripts.LEAVE_LANE)
        self._forget = Script(redis, lane_scripts.FORGET)
        self._cancel = Script(redis, lane_scripts.CANCEL)
        self._requeue = Script(redis, lane_scripts.REQUEUE)

    def _lane_keys(self, part: Partition, lane: str) -> list[str]:
        stream = self._tickets[part].stream_of(lane)
        return [
            stream,
            _delayed(stream),
            part.waiting(self.name),
            part.lane(self.name, lane),
            part.lock(self.name, lane),
        ]

    def _held_keys(self, lease: Lease) -> tuple[Partition, list[str]]:
        part = self.keys.of_id(lease.job_id)
        return part, [*self._lane_keys(part, lease.ticket.lane), part.job(lease.job_id)]

    async def submit(self, job: Submission) -> bool:
        """Queue the job; True when it is durable, False when a job of that id exists already."""
        listed = await self._submit.number(*self.entry(job))
        await self.look_through(listed, job.index)
        return listed > 0

    def entry(self, job: Submission) -> Entry:
        """What a script needs to queue the job."""
        part = self.keys.of_id(job.job_id)
        keys = [*self._lane_keys(part, job.lane), part.job(job.job_id), job.index]
        events = [job.events_key] if job.first_event else []
        fields = {**job.fields, **Origin.here().model_dump()}
        pairs = [value for pair in fields.items() for value in pair]
        return keys + events, [job.job_id, job.lane, job.created_ms, job.first_event, *pairs]

    async def ensure_group(self) -> None:
        """Create streams and groups where they are missing."""
        for tickets in self._tickets.values():
            await tickets.ensure_groups()

    async def take(self, consumer: str, *, block_ms: int, partition: Partition | None = None) -> Ticket | None:
        """A new ticket of a partition (the first, if none is named), waiting for at most ``block_ms``."""
        tickets = self._tickets[partition or self.keys.partitions[0]]
        return await tickets.take(consumer, block_ms=block_ms)

    async def pass_back(self, ticket: Ticket) -> None:
        """Give a ticket that was taken, and not begun, to whoever comes next."""
        await self._tickets[self.keys.of_id(ticket.job_id)].pass_back(ticket)

    async def claim_stale(self, consumer: str, *, idle_ms: int, count: int) -> list[Ticket]:
        """Tickets of one partition whose worker gave no sign for ``idle_ms``."""
        for tickets in self._tickets.values():
            if found := await tickets.claim_stale(consumer, idle_ms=idle_ms, count=count):
                return found
        return []

    async def begin(self, ticket: Ticket, *, lease_ms: int) -> Lease | None:
        """The lane's next job, or None when there is nothing to do now; the ticket is then gone."""
        part = self.keys.of_id(ticket.job_id)
        keys, head, reply = [*self._lane_keys(part, ticket.lane), part.fence], ticket.job_id, ["head", ticket.job_id]
        while reply[0] == "head":
            head = reply[1]
            reply = await self._begin.rows([*keys, part.job(head)], [GROUP, ticket.id, ticket.lane, lease_ms, head])
        if reply[0] != "run":
            return None
        token, starts, failures, outages, request_id, traceparent = reply[1:]
        origin = Origin(request_id=request_id, traceparent=traceparent)
        return Lease(ticket, int(token), head, int(starts), int(failures), int(outages), origin)

    async def beat(self, lease: Lease, *, consumer: str, lease_ms: int) -> Beat:
        """Renew the lock and keep the ticket from looking stale; tells whether the job is still to be done."""
        _, keys = self._held_keys(lease)
        return cast(Beat, await self._beat(keys, [GROUP, lease.ticket.id, lease.mine, lease_ms, consumer]))

    async def finish(self, lease: Lease, *, status: str, record: str, keep_ms: int | None, dead: str = "") -> bool:
        """End the job and free its lane; with ``dead`` (the error) as a dead letter.

        ``keep_ms`` is how long the record stays (None: as long as the queue's do); 0 keeps it for ever, with the
        payload and the journal, so that an operator can put the job back. False when the lease was lost: nothing is
        written then.
        """
        part, held = self._held_keys(lease)
        keys = [*held, part.journal(lease.job_id), part.dead]
        ids = [GROUP, lease.ticket.id, lease.mine, lease.ticket.lane, lease.job_id]
        kept_ms = self.keep_ms if keep_ms is None else keep_ms
        return await self._finish.number(keys, [*ids, status, record, kept_ms, dead]) == 1

    async def retry(self, lease: Lease, *, counter: Counter, delay_ms: int, error: str) -> bool:
        """Free the lane and have its head tried again after ``delay_ms``. False when the lease was lost."""
        _, keys = self._held_keys(lease)
        args = [GROUP, lease.ticket.id, lease.mine, lease.ticket.lane, counter, delay_ms, error]
        return await self._retry.number(keys, args) == 1

    async def abandon(self, lease: Lease) -> None:
        """Give the job back, uncounted, to whoever comes next."""
        _, keys = self._held_keys(lease)
        await self._abandon(keys, [GROUP, lease.ticket.id, lease.mine, lease.ticket.lane])

    async def promote_due(self) -> float:
        """Write tickets for the lanes whose delay is over; in how many seconds the next one's is (infinity: never)."""
        next_s = math.inf
        for part, tickets in self._tickets.items():
            soonest_ms, *lanes = await self._due.rows([_delayed(stream) for stream in tickets.streams], [])
            for lane in lanes:
                await self._promote.number(self._lane_keys(part, lane), [lane])
            next_s = min(next_s, int(soonest_ms) / 1000 if soonest_ms else math.inf)
        return next_s

    async def take_lane(self, lane: str, *, lease_ms: int, force: bool) -> int | None:
        """Lock the lane for something that is no job; its fencing token, or None while a job holds it."""
        part = self.keys.of_name(lane)
        token = await self._take_lane([*self._lane_keys(part, lane), part.fence], [lease_ms, int(force)])
        return int(cast(str, token)) or None

    async def take_idle_lane(self, lane: str, *, lease_ms: int) -> int | None:
        """Lock a lane in which nothing runs or waits; its fencing token, or None when something does."""
        part = self.keys.of_name(lane)
        token = await self._take_idle_lane([*self._lane_keys(part, lane), part.fence], [lease_ms])
        return int(cast(str, token)) or None

    async def record(self, job: Submission, token: int) -> None:
        """Keep the record of what was done under a token of :meth:`take_idle_lane` for ``keep_ms``; free the lane."""
        part = self.keys.of_id(job.job_id)
        pairs = [value for pair in job.fields.items() for value in pair]
        args = [f"{token}|erase", job.lane, job.job_id, job.created_ms, self.keep_ms, *pairs]
        listed = await self._record.number([*self._lane_keys(part, job.lane), part.job(job.job_id), job.index], args)
        await self.look_through(listed, job.index)

    async def leave_lane(self, lane: str, token: int) -> None:
        """Undo :meth:`take_lane` or :meth:`take_idle_lane`."""
        await self._leave_lane(self._lane_keys(self.keys.of_name(lane), lane), [f"{token}|erase", lane])

    async def forget(self, lane: str, job_id: str, *, index: str, also: Sequence[str] = ()) -> str | None:
        """Delete every trace of the job; its last status, or None when there was none. A run of it loses its lease."""
        part = self.keys.of_id(job_id)
        keys = [*self._lane_keys(part, lane), part.job(job_id), part.journal(job_id), index, part.dead, *also]
        return cast("str | None", await self._forget(keys, [job_id]))

    async def requeue(self, lane: str, job_id: str, *, record: str, created_ms: int) -> bool:
        """Put a dead letter back, at the end of its lane, with all attempts anew; False when it is none."""
        part = self.keys.of_id(job_id)
        keys = [*self._lane_keys(part, lane), part.job(job_id), part.journal(job_id), part.dead]
        return await self._requeue.number(keys, [job_id, lane, record, created_ms]) == 1

    async def cancel(self, lane: str, job_id: str, *, record: str, keep_ms: int, then: Entry = ((), ())) -> str:
        """End a waiting job with ``record``, or ask its worker to: ``cancelled``, ``asked``, ``done`` or ``gone``.

        ``then`` is the :meth:`entry` of a job that is queued in the same step as a waiting one ends.
        """
        part = self.keys.of_id(job_id)
        keys = [*self._lane_keys(part, lane), part.job(job_id), part.journal(job_id), *then[0]]
        return cast(str, await self._cancel(keys, [job_id, record, keep_ms, *then[1]]))

    async def depth(self) -> Depth:
        """How much is not done yet."""
        found = [await self._depth(part, tickets) for part, tickets in self._tickets.items()]
        return Depth(
            jobs=sum(depth.jobs for depth in found),
            oldest_created_ms=_earliest(depth.oldest_created_ms for depth in found),
            waiting_since_ms=_earliest(depth.waiting_since_ms for depth in found),
        )

    async def _depth(self, part: Partition, tickets: Tickets) -> Depth:
        with redis_errors():
            jobs = await self._redis.zcard(part.waiting(self.name))
            oldest: object = await self._redis.zrangebyscore(  # pyright: ignore[reportUnknownMemberType]
                part.waiting(self.name), "-inf", "+inf", start=0, num=1, withscores=True
            )
        scores = [int(float(cast(float, pair[1]))) for pair in cast(Sequence[Sequence[object]], oldest)]
        return Depth(jobs, scores[0] if scores else None, await tickets.waiting_since_ms())

    async def look_through(self, listed: int, index: str) -> None:
        """Take jobs that are gone out of the old end of an index, when a script says that it is worth it."""
        if listed != _WORTH_A_LOOK:
            return
        with redis_errors():
            ids = [text(id_) for id_ in cast(Sequence[object], await self._redis.zrange(index, 0, _LOOKED_AT - 1))]  # pyright: ignore[reportUnknownMemberType]
            gone = [id_ for id_ in ids if not await self._redis.exists(self.keys.job(id_))]
            if gone:
                await self._redis.zrem(index, *gone)


def _earliest(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _delayed(stream: str) -> str:
    """The sorted set of the lanes that wait for their next attempt."""
    return f"{stream}:delayed"
