"""Queues memory writes: the API puts them into Redis, the worker takes them from there.

A write is accepted once its script returned: payload, event record, lane entry and ticket are one atomic step.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import Field, JsonValue
from redis.asyncio import Redis

from gateway.memory.events import MemoryEvents
from gateway.queue import KEEP_MS, LaneQueue, Submission
from gateway.redis import key_names as keys
from memloop.wire.base import Wire
from memloop.wire.memory import MemoryEvent, Namespace, Source

MEMORY_QUEUE = "memory"


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
    """A new id of 128 random bits."""
    return keys.event_id(namespace.lane(), secrets.token_hex(16))


class MemoryQueue:
    """Memory writes: queued in lanes, and followed by their events."""

    def __init__(self, redis: Redis, *, keep_ms: int = KEEP_MS) -> None:
        self.lanes = LaneQueue(redis, MEMORY_QUEUE, keep_ms=keep_ms)
        self.events = MemoryEvents(redis, self.lanes)

    async def enqueue_write(
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

        ``infer`` has MemReader decide what to keep; False keeps the texts verbatim. No turns: decide over the
        buffered ones. A given ``event_id`` makes a second call harmless. Raises Unavailable.
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
        """Queue a write; it is durable then. Harmless when it is queued already. Raises Unavailable."""
        await self.lanes.submit(self._submission(job, queued_event(job)))

    async def record_direct_write(self, job: MemoryJob, event: MemoryEvent, *, token: int) -> None:
        """Keep the event of a write that was done under a token of ``take_idle_lane``, and free the lane."""
        submission = self._submission(job, event)
        fields = {name: value for name, value in submission.fields.items() if name != "payload"}
        await self.lanes.record(replace(submission, fields=fields), token)

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
    """The event of a write that waits."""
    return MemoryEvent(event_id=job.event_id, status="queued", user_id=job.namespace.user_id, created_at=job.created_at)
