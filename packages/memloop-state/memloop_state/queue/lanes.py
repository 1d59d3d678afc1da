"""Durable job lanes: the jobs of one lane run one at a time, in queue order, exactly once.

A lane is a Redis list of job ids. A lane with jobs waits for a worker, waits for its delay, or is *held*: its lock has
a worker's name, and a sorted set has the lane by the time from which that worker counts as dead. One step
(``lua/turns.lua``) takes the next lane that waits and leases the job at the list's head; another ends the job, frees
the lane and, if the list has more, lets it wait again:

* one script writes a job and its event record and lets its lane wait: once it returns, the job is durable;
* the worker's heartbeat renews the lock and the time; every step of the worker compares the lock's value first;
* a dead worker's lane stays held; when its time has passed another worker claims it, with a higher fencing token.

The lock is ``SET PX`` with a fencing token from one counter for all lanes.

A queue has *partitions*: one on a single Redis, more in a cluster. All keys of a lane and its jobs are in one partition
and so in one slot (``memloop_state.steps``). Each partition has its own lines of lanes, token counter and dead letters.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import product
from typing import Any, Final

from memloop.wire.base import Origin
from memloop.wire.errors import Erased, RateLimited
from memloop_state.indexes import Indexes
from memloop_state.link import State, all_sent, redis_errors
from memloop_state.owners import owned_terms
from memloop_state.queue.jobs import Beat, Counter, Depth, Entry, GuardBroken, IndexFull, Lease, Submission, Worker
from memloop_state.queue.records import DeadLetters, JobRecords, Journal
from memloop_state.room import QueueRules
from memloop_state.steps import Guard, Partition, Partitions, lane_steps, lane_terms, named

DEFAULT_TIER: Final = "default"
KEEP_MS = 7 * 24 * 3600 * 1000
"""Default retention of a finished job's record."""
_MOST_LANES: Final = 500
"""Lanes in one reply that wait for a worker. The others have a worker or failed a moment ago, and are few."""
_TOO_MUCH = "This tenant's queued jobs hold as many bytes as they may: wait until some are done."
_RETRY_AFTER_S = 10.0


class LaneQueue:
    """One queue of lanes. Every method raises Unavailable when Redis is unreachable.

    ``tiers`` are listed from the most urgent. A lane's name begins with its tier and a colon, unless it is the default
    tier.
    """

    def __init__(
        self,
        redis: State,
        name: str,
        *,
        keep_ms: int = KEEP_MS,
        tiers: Sequence[str] = (DEFAULT_TIER,),
        rules: QueueRules | None = None,
    ) -> None:
        self._redis: Any = redis
        self.name = name
        self.keep_ms = keep_ms
        self.rules = rules or QueueRules()
        self.keys = Partitions(redis)
        self.jobs = JobRecords(redis)
        self.letters = DeadLetters(redis)
        self.indexes = Indexes(redis)
        self._lines = {tier: name if tier == DEFAULT_TIER else f"{name}:{tier}" for tier in tiers}
        self._step = lane_steps(redis)

    async def _stepped(
        self,
        step: str,
        lane: str,
        terms: Mapping[str, object],
        *,
        job_id: str = "",
        texts: Sequence[str] = (),
        sure: bool = False,
    ) -> Any:
        """Run a step of a lane and of one of its jobs, whose partition is theirs."""
        here = self.keys.of_id(job_id) if job_id else self.keys.of_name(lane)
        args = named(*texts, **self._place(lane), id=job_id, **terms)
        return await self._step(step, [here.root], args, acknowledged=sure)

    def _place(self, lane: str) -> Mapping[str, str]:
        return lane_terms(self.name, lane, line=self._lines.get(lane.partition(":")[0], self.name))

    async def _held(self, step: str, lease: Lease, **terms: object) -> Any:
        """Run a step of a lane's holder."""
        held = {"mine": f"{lease.token}|{lease.worker.name}", **terms}
        return await self._stepped(step, lease.lane, held, job_id=lease.job_id)

    async def admit(self, job: Submission, *, guard: Guard | None = None) -> bool:
        """Queue a client's job if the rules allow it, as :meth:`submit` does.

        Raises RateLimited when the tenant's queued jobs would hold more than its quota, Unavailable while Redis is
        nearly full or unreachable, and GuardBroken if ``guard`` is and the job is not queued.
        """
        async with self.rules.admitting(self.name) as quota_bytes:
            return await self.submit(job, quota_bytes=quota_bytes, guard=guard)

    async def submit(self, job: Submission, *, quota_bytes: int = 0, guard: Guard | None = None) -> bool:
        """Queue the job. Returns True once it is durable, False if a job of that id already exists.

        With ``quota_bytes`` the tenant's queued jobs in the job's partition may hold that much, or be one job. Raises
        RateLimited when they would hold more, and Erased when one of its owners was erased after the work on it began.
        """
        terms, texts = self.entry(job, quota_bytes=quota_bytes)
        args = named(*texts, **terms, guard=guard)
        match await self._step("submit", [self.keys.of_id(job.job_id).root], args, acknowledged=True):
            case "changed":
                raise GuardBroken
            case "erased":
                raise Erased
            case "many":
                raise IndexFull
            case "full":
                raise RateLimited(_TOO_MUCH, code="queue_quota_exceeded", retry_after_s=_RETRY_AFTER_S)
            case outcome:
                return outcome == "queued"

    def entry(self, job: Submission, *, quota_bytes: int = 0) -> Entry:
        """Return the terms and texts with which a script queues the job."""
        terms = {
            **self._place(job.lane),
            "id": job.job_id,
            "index": job.index,
            "now": job.created_ms,
            "tenant": job.fields.get("tenant", ""),
            "quota": quota_bytes,
            "most": job.index_most,
            "owners": owned_terms(job.owners, kind=job.kind, record_id=job.job_id),
        } | ({"event": job.first_event} if job.first_event else {})
        return terms, _pairs({**job.fields, **Origin.here().model_dump()})

    async def newest_token(self) -> int:
        """Return a number that no fencing token so far exceeds and every later one does.

        A write that begins now can thus be ordered against the erasures, whose tokens they are. In a cluster it is the
        lowest of all partitions: an erasure right before may count as later.
        """
        tokens = [self._step("newest", [part.root], named()) for part in self.keys.partitions]
        return min(map(int, await asyncio.gather(*tokens)))

    def journal(self, job_id: str) -> Journal:
        return Journal(self._redis, job_id)

    async def take(
        self, worker: Worker, *, partition: Partition | None = None, passing: Collection[str] = ()
    ) -> Lease | None:
        """Lease the next job of a partition (default: the first), or None when none waits; pass over these tenants."""
        part = partition or self.keys.partitions[0]
        return await self._leased("take", worker, part, passing=list(passing), weights=self.rules.weights)

    async def wait(self, *, block_ms: int, partition: Partition | None = None) -> None:
        """Wait at most ``block_ms`` until a lane of the partition waits; another worker may be faster to take it."""
        bell = (partition or self.keys.partitions[0]).key("bell", self.name)
        with redis_errors():
            await self._redis.blpop([bell], timeout=block_ms / 1000)  # pyright: ignore

    async def claim(self, worker: Worker, *, running: Collection[str] = ()) -> Lease | None:
        """Lease the job of a worker that has been silent for too long, except in lanes that the caller runs itself."""
        for part in self.keys.partitions:
            if lease := await self._leased("claim", worker, part, running=list(running)):
                return lease
        return None

    async def _leased(self, step: str, worker: Worker, part: Partition, **terms: object) -> Lease | None:
        args = named(queue=self.name, lines=list(self._lines.values()), worker=worker, **terms)
        found = await self._step.rows(step, [part.root], args)
        if not found:
            return None
        lane, job_id, token, starts, failures, outages, tenant, request_id, traceparent = found
        origin = Origin(request_id=request_id, traceparent=traceparent)
        return Lease(worker, lane, job_id, int(token), int(starts), int(failures), int(outages), tenant, origin)

    async def beat(self, lease: Lease) -> Beat:
        """Renew the lease. Returns whether the job still has to be done."""
        return await self._held("beat", lease, worker=lease.worker)

    async def finish(
        self, lease: Lease, *, status: str, record: str, keep_ms: int | None, dead: str = "", keeps_work: bool = False
    ) -> bool:
        """End the job and free its lane; a ``dead`` error makes it a dead letter.

        ``keep_ms`` is the retention of the record (None: the queue's). 0 keeps it indefinitely, with payload and
        journal. ``keeps_work`` keeps these as long as the record, so that an operator can requeue the job. Returns
        False, and writes nothing, when the lease was lost.
        """
        kept_ms = self.keep_ms if keep_ms is None else keep_ms
        how = {"status": status, "record": record, "dead": dead or None}
        keeps = {"keep_ms": kept_ms or None, "keeps_work": keeps_work or not kept_ms}
        return await self._held("finish", lease, **how, **keeps) == 1

    async def retry(self, lease: Lease, *, counter: Counter, delay_ms: int, error: str) -> bool:
        """Free the lane and delay its head by ``delay_ms``. Returns False when the lease was lost."""
        return await self._held("retry", lease, counter=counter, delay_ms=delay_ms, error=error) == 1

    async def abandon(self, lease: Lease) -> None:
        """Return the job to the queue without counting the run."""
        await self._held("abandon", lease)

    async def promote_due(self) -> float:
        """Let lanes wait whose delay has elapsed. Returns the seconds until the next one (infinity: none)."""
        args = named(queue=self.name, lines=list(self._lines.values()))
        waits_ms = [await self._step("promote", [part.root], args) for part in self.keys.partitions]
        return min((wait_ms / 1000 for wait_ms in waits_ms if wait_ms is not None), default=math.inf)

    async def take_lane(
        self, lane: str, *, lease_ms: int, force: bool = False, idle: bool = False, guard: Guard | None = None
    ) -> int | None:
        """Lock the lane for an erasure, or to write where no job waits (``idle``).

        Returns the fencing token, or None while a job holds the lane, unless by ``force``. Raises GuardBroken, whether
        the lane is busy or not, if ``guard`` is.
        """
        terms = {"lease_ms": lease_ms, "force": force, "idle": idle, "guard": guard}
        taken = await self._stepped("take_lane", lane, terms)
        if taken == "changed":
            raise GuardBroken
        return int(taken) or None

    async def record(self, job: Submission, *, token: int | None = None, keep_ms: int | None = None) -> None:
        """Store a job that no worker runs, for ``keep_ms`` (None: the queue's retention).

        With the ``token`` of :meth:`take_lane` the lane is free then. Raises Erased, and stores nothing, when an
        owner was erased since the work began, or the lane was lost: an erasure has taken it.
        """
        terms, _ = self.entry(job)
        mine = None if token is None else f"{token}|erase"
        args = named(*_pairs(job.fields), **terms, mine=mine, keep_ms=keep_ms or self.keep_ms)
        root = self.keys.of_id(job.job_id).root
        if not await self._step("record", [root], args, acknowledged=token is not None):
            raise Erased

    async def leave_lane(self, lane: str, token: int) -> None:
        """Undo :meth:`take_lane`."""
        await self._stepped("abandon", lane, {"mine": f"{token}|erase"})

    async def forget(self, lane: str, job_id: str) -> tuple[str | None, str | None]:
        """Delete the job and its data; a running worker loses its lease. Returns the last status and record."""
        status, record = await self._stepped("forget", lane, {}, job_id=job_id, sure=True)
        return status, record

    async def requeue(
        self, lane: str, job_id: str, *, record: str, created_ms: int, payload: str | None = None, former: str = ""
    ) -> bool:
        """Queue a dead letter again at the end of its lane, or an ended job with another ``payload``.

        Its attempts are counted from zero. A dead letter keeps the decisions and stored results of its journal, the
        other job nothing. Returns False, and changes nothing, unless it is a dead letter, or an ended job that is
        recorded as ``former``.
        """
        terms = {"record": record, "now": created_ms, "payload": payload, "former": former}
        return await self._stepped("requeue", lane, terms, job_id=job_id, sure=True) == 1

    async def cancel(self, lane: str, job_id: str, *, record: str, keep_ms: int, then: Entry | None = None) -> str:
        """End a waiting job with ``record``, or request its worker to: ``cancelled``, ``asked``, ``done`` or ``gone``.

        ``then`` is the :meth:`entry` of a job to queue in the step that ends a waiting one.
        """
        following, texts = then or (None, ())
        terms = {"record": record, "keep_ms": keep_ms, "next": following}
        return await self._stepped("cancel", lane, terms, job_id=job_id, texts=texts, sure=True)

    async def jobs_of(self, lanes: Sequence[str]) -> list[list[str]]:
        """Return the ids of each lane's jobs in one round trip."""
        keys = [self.keys.of_name(lane).key("lane", self.name, lane) for lane in lanes]
        return await all_sent(self._redis, [("LRANGE", key, 0, -1) for key in keys])

    async def depth(self) -> Depth:
        opens, turns, sinces = (
            [part.key(kind, self.name) for part in self.keys.partitions] for kind in ("open", "turns", "since")
        )
        created_ms = [await self.indexes.lowest(key) for key in opens]
        since_us = [await self.indexes.lowest(key) for key in sinces]
        return Depth(
            jobs=sum([await self.indexes.count(key) for key in opens]),
            oldest_created_ms=min((at for at in created_ms if at is not None), default=None),
            waiting_since_ms=min((at // 1000 for at in since_us if at is not None), default=None),
            tenants=sum([await self.indexes.count(key) for key in turns]),
        )

    async def lanes_of(self, tenant: str, *, prefix: str) -> AsyncIterator[Sequence[str]]:
        """Yield the tenant's lanes with jobs in pages, one maybe twice; their names begin with ``prefix``."""
        for part, line in product(self.keys.partitions, self._lines.values()):
            last, more = "", True
            while more:
                args = named(line=line, tenant=tenant, prefix=prefix, last=last, most=_MOST_LANES)
                last, *lanes = await self._step.rows("lanes_of", [part.root], args)
                yield lanes
                more = bool(last)


def _pairs(fields: Mapping[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]
