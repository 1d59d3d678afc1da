"""Admission of durable work: what the API writes to Redis and the worker takes from there.

A job is accepted when its script returned: payload, event record, lane entry and ticket are one atomic write.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import Field, JsonValue
from redis.asyncio import Redis

from gateway.long_read.records import TIERS, ReadRecords
from gateway.memory.events import MemoryEvents
from gateway.queue.lanes import KEEP_MS, LaneQueue, Submission
from gateway.redis import key_names as keys
from gateway.redis.lua import redis_errors
from memloop.wire.base import Wire
from memloop.wire.memory import MemoryEvent, Namespace, Source

MEMORY_QUEUE = "memory"
READS_QUEUE = "reads"
FILES_QUEUE = "files"
WEBHOOKS_QUEUE = "webhooks"


class MemoryJob(Wire):
    """One memory write. Without turns it decides over what is buffered (a flush).

    ``key`` names the memories of an ``infer=False`` write; left out, a text names itself.
    """

    event_id: str
    namespace: Namespace
    turns: tuple[Source, ...]
    infer: bool = True
    key: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    timestamp: datetime | None = None
    expires_at: datetime | None = None
    created_at: datetime

    @property
    def created_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(self.created_at.timestamp() * 1000)

    @property
    def flushes(self) -> bool:
        """Whether it settles what is buffered."""
        return not self.turns


def new_event_id(namespace: Namespace) -> str:
    """An id that nobody can guess (128 random bits)."""
    return keys.event_id(namespace.lane(), secrets.token_hex(16))


class Jobs:
    """The process's way to queue work and to follow it."""

    def __init__(self, redis: Redis, *, keep_events_ms: int = KEEP_MS, keep_reads_ms: int = KEEP_MS) -> None:
        self.memory = LaneQueue(redis, MEMORY_QUEUE, keep_ms=keep_events_ms)
        self.reads = LaneQueue(redis, READS_QUEUE, keep_ms=keep_reads_ms, tiers=TIERS)
        self.files = LaneQueue(redis, FILES_QUEUE)
        self.events = MemoryEvents(redis, self.memory)
        self.webhooks = LaneQueue(redis, WEBHOOKS_QUEUE)
        self.read_records = ReadRecords(redis, self.reads, self.webhooks)
        self.queues = (self.memory, self.reads, self.files, self.webhooks)
        self._redis = redis

    async def dead(self) -> int:
        """Jobs of all queues that were given up and wait for an operator. Raises Unavailable, Timeout."""
        with redis_errors():
            return sum([await self._redis.xlen(part.dead) for part in self.memory.keys.partitions])

    async def enqueue_memory_write(
        self,
        namespace: Namespace,
        turns: Sequence[Source],
        *,
        infer: bool = True,
        key: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        timestamp: datetime | None = None,
        expires_at: datetime | None = None,
        event_id: str | None = None,
    ) -> str:
        """Queue a write in the namespace's lane; its event id, once it is durable.

        ``infer`` has MemReader decide what to keep; False keeps the texts as they are. No turns: decide over the
        buffered ones. A given ``event_id`` makes a second call harmless. Raises Unavailable, Timeout.
        """
        job = MemoryJob(
            event_id=event_id or new_event_id(namespace),
            namespace=namespace,
            turns=tuple(turns),
            infer=infer,
            key=key,
            metadata=dict(metadata or {}),
            timestamp=timestamp,
            expires_at=expires_at,
            created_at=datetime.now(UTC),
        )
        await self.enqueue(job)
        return job.event_id

    async def enqueue(self, job: MemoryJob) -> None:
        """Queue a write; it is durable then. Harmless when it is queued already. Raises Unavailable, Timeout."""
        await self.memory.submit(self._submission(job, queued_event(job)))

    async def record_direct_write(self, job: MemoryJob, event: MemoryEvent, *, token: int) -> None:
        """Keep the event of a write that was done under a token of ``take_idle_lane``, and free the lane."""
        submission = self._submission(job, event)
        fields = {name: value for name, value in submission.fields.items() if name != "payload"}
        await self.memory.record(replace(submission, fields=fields), token)

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
            index=self.events.index(namespace),
            fields=fields,
        )


def queued_event(job: MemoryJob) -> MemoryEvent:
    """The event of a write that nobody has begun."""
    return MemoryEvent(event_id=job.event_id, status="queued", user_id=job.namespace.user_id, created_at=job.created_at)
