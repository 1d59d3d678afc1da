"""Queues memory writes, from where the worker takes them, with their texts redacted.

One script stores payload, event record and lane entry atomically; a write is accepted once it returns.
"""

import secrets
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from prometheus_client import Counter as Metric
from pydantic import Field

from gateway.memory.events import MemoryEvents, event_id
from gateway.policy import Keeper, Redaction, Redactions, chars_of, redacted_metadata, redacted_turns
from gateway.queue import KEEP_MS, LaneQueue, QueueRules, Submission
from memloop.chores import computed
from memloop.wire.errors import Conflict, RateLimited, TooLarge, Unavailable
from memloop.wire.fields import MAX_WRITE_BYTES
from memloop.wire.memory import GivenToMemories, Namespace, Source
from memloop.wire.memory_events import MemoryEvent
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.steps import Guard

MEMORY_QUEUE = "memory"
LEASE_MS = 120_000
"""Of a lane that a request holds: longer than any call of the store."""


class MemoryJob(GivenToMemories):
    """One memory write. A job without turns decides over the buffered ones (a flush), or again over ``kept`` ones.

    With ``infer`` MemReader decides what to keep; without it the texts are stored verbatim. ``key`` is then the key of
    the memories; by default it derives from the text. A job that ``settles`` leaves no turn waiting for more.
    """

    event_id: str
    namespace: Namespace
    turns: tuple[Source, ...] = ()
    infer: bool = True
    settles: bool = False
    key: str | None = None
    timestamp: datetime | None = None
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    redacted: dict[str, int] = Field(default_factory=dict[str, int])
    """The number of values that were redacted, by kind."""
    kept: MemoryEvent | None = None
    """The event of a write that was kept verbatim, whose ``KeptTurn`` memories the job decides on again."""

    @property
    def created_ms(self) -> int:
        """The creation time in milliseconds since the epoch."""
        return int(self.created_at.timestamp() * 1000)

    @property
    def flushes(self) -> bool:
        """Whether the job settles the buffer."""
        return not self.turns and self.kept is None


def new_event_id(namespace: Namespace) -> str:
    """Return a new id of 128 random bits."""
    return event_id(namespace.lane(), secrets.token_hex(16))


@dataclass(frozen=True, slots=True)
class DirectWrite:
    """A redacted write that bypasses the queue, and the token of its lane; None if the lane is busy."""

    job: MemoryJob
    redactions: Redactions
    token: int | None


class MemoryQueue:
    """Queues memory writes in lanes and tracks their events."""

    def __init__(
        self, state: State, *, keep_ms: int = KEEP_MS, rules: QueueRules, refused: Metric, keeper: Keeper
    ) -> None:
        self._refused = refused
        self._keeper = keeper
        self.lanes = LaneQueue(state, MEMORY_QUEUE, keep_ms=keep_ms, rules=rules)
        self.events = MemoryEvents(state, self.lanes)

    async def enqueue(self, job: MemoryJob, *, began: int | None = None) -> None:
        """Queue a write in its namespace's lane, redacted as the policies ask; it is durable once this returns.

        A write whose ``event_id`` is queued already has no effect.

        ``began`` is for the text of a request that takes long: ``LaneQueue.newest_token`` at its beginning. Raises
        Conflict if the namespace was erased after it, TooLarge for a write that the store could never take, RateLimited
        over the tenant's quota of queued bytes, and Unavailable.
        """
        enter = partial(self._enter, job, began)
        try:
            await (self._keeper.guarded(job.namespace, enter) if job.turns else enter(None, None))
        except (TooLarge, RateLimited, Unavailable) as error:
            over = "quota" if isinstance(error, RateLimited) else "unavailable"
            self._refused.labels("too_large" if isinstance(error, TooLarge) else over).inc()
            raise

    async def _enter(
        self, job: MemoryJob, began: int | None, redactions: Redactions | None, guard: Guard | None
    ) -> None:
        """Queue the write, redacted. Raises as ``enqueue`` does, and GuardBroken as ``LaneQueue.admit``."""
        clean, redact = await _cleaned(job, redactions) if redactions is not None else (job, None)
        submission = self._submission(clean, queued_event(clean))
        if began is not None:
            submission = replace(submission, owners=(Owner(job.namespace, began),))
        payload = submission.fields["payload"]
        if 4 * len(payload) > MAX_WRITE_BYTES and len(payload.encode("utf-8", "surrogatepass")) > MAX_WRITE_BYTES:
            raise TooLarge(
                f"A write has at most {MAX_WRITE_BYTES} bytes: send its messages in several.", param="messages"
            )
        await self.lanes.admit(submission, guard=guard)
        if redactions is not None and redact is not None:
            redactions.counted(redact)

    async def begin_direct_write(self, job: MemoryJob) -> DirectWrite:
        """Redact a write as the policies ask, and lock its lane if that is idle. Raises Unavailable."""

        async def begun(redactions: Redactions, guard: Guard | None) -> DirectWrite:
            clean, redact = await _cleaned(job, redactions)
            token = await self.lanes.take_lane(job.namespace.lane(), lease_ms=LEASE_MS, idle=True, guard=guard)
            redactions.counted(redact)
            return DirectWrite(clean, redactions, token)

        return await self._keeper.guarded(job.namespace, begun)

    async def record_direct_write(self, job: MemoryJob, event: MemoryEvent, *, token: int) -> None:
        """Store the event of a write done under a token of ``begin_direct_write``, and free the lane.

        Raises Conflict, and stores nothing, if an erasure has taken the lane.
        """
        submission = self._submission(job, event)
        fields = {name: value for name, value in submission.fields.items() if name != "payload"}
        await self.lanes.record(replace(submission, fields=fields), token=token)

    async def retry(self, tenant: str, event_id: str) -> None:
        """Requeue a write that failed on its last attempt. Raises NotFound, and Conflict for any other write."""
        await self.events.get(tenant, event_id)
        if not await requeue(self.lanes, event_id):
            raise Conflict("Only a failed write can be retried, while its turns are kept.", code="write_not_failed")

    def _submission(self, job: MemoryJob, event: MemoryEvent) -> Submission:
        namespace = job.namespace
        fields = {
            "tenant": namespace.tenant,
            "user_id": namespace.user_id,
            "agent_id": namespace.agent_id or "",
            "run_id": namespace.run_id or "",
            "status": event.status,
            "record": event.model_dump_json(),
            "payload": job.model_dump_json(),
        }
        return Submission(
            job_id=job.event_id,
            lane=namespace.lane(),
            created_ms=job.created_ms,
            index=self.lanes.keys.writes_of(namespace),
            fields=fields,
        )


async def dead_write(lanes: LaneQueue, job_id: str) -> MemoryJob | None:
    """Return the dead letter's write; None if there is no such dead letter or its payload is gone."""
    dead, payload = await lanes.jobs.get(job_id, "dead", "payload")
    return MemoryJob.model_validate_json(payload) if dead and payload else None


async def requeue(lanes: LaneQueue, job_id: str) -> bool:
    """Requeue the dead letter's write with a new set of attempts. Returns False if there is none."""
    job = await dead_write(lanes, job_id)
    if job is None:
        return False
    record = queued_event(job).model_dump_json()
    return await lanes.requeue(job.namespace.lane(), job_id, record=record, created_ms=job.created_ms)


async def _cleaned(job: MemoryJob, redactions: Redactions) -> tuple[MemoryJob, Redaction]:
    """Return the write redacted, and its redaction, whose counts are not yet added to the metrics."""
    redact = redactions.of(job.namespace)
    if not redact.is_active:
        return job, redact
    clean = await computed(
        lambda: job.model_copy(
            update={
                "turns": redacted_turns(job.turns, redact),
                "key": None if job.key is None else redact(job.key),
                "metadata": redacted_metadata(job.metadata, redact),
            }
        ),
        chars=chars_of(job.turns, job.metadata),
    )
    if not redact.counts:
        return job, redact
    return clean.model_copy(update={"redacted": dict(Counter(job.redacted) + redact.counts)}), redact


def queued_event(job: MemoryJob) -> MemoryEvent:
    """Return the event of a queued write."""
    return MemoryEvent(
        event_id=job.event_id,
        status="queued",
        user_id=job.namespace.user_id,
        created_at=job.created_at,
        redacted=job.redacted,
    )
