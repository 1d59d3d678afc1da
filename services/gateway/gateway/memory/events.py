"""What became of every memory write: the event records, their listing, waiting for one, erasing a namespace's."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis

from gateway.access import OtherTenants
from gateway.queue import LaneQueue
from gateway.redis import text
from memloop.wire.errors import NotFound
from memloop.wire.memory import MemoryEvent, Namespace
from memloop_service.redis_link import redis_errors

_TERMINAL = ("completed", "failed")
_NONE = "There is no event {!r}."
_FIRST_POLL_S = 0.02
_LAST_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many events were deleted, and how many of their writes were still waiting."""

    events: int
    waiting: int


@dataclass(frozen=True, slots=True)
class _Row:
    """A job's hash as far as an event shows it."""

    tenant: str
    agent_id: str
    run_id: str
    record: str
    status: str
    failures: int
    error: str


_FIELDS = ("tenant", "agent_id", "run_id", "record", "status", "failures", "error")


class MemoryEvents:
    """Event records, each seen by its own tenant only. Methods raise Unavailable when Redis is gone."""

    def __init__(self, redis: Redis, queue: LaneQueue) -> None:
        self._redis = redis
        self._queue = queue
        self._keys = queue.keys

    async def get(self, tenant: str, event_id: str) -> MemoryEvent:
        """The event. Raises NotFound when there is none in this tenant."""
        row = await self._row(event_id)
        if row is None or not event_id.startswith("evt_"):
            raise NotFound(_NONE.format(event_id), param="event_id")
        if row.tenant != tenant:
            raise OtherTenants(_NONE.format(event_id), param="event_id")
        return _event(row)

    async def wait(self, tenant: str, event_id: str, *, timeout_s: float) -> MemoryEvent:
        """The event once it is completed or failed, or as it is after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        poll_s = _FIRST_POLL_S
        while True:
            event = await self.get(tenant, event_id)
            left_s = deadline - time.monotonic()
            if event.status in _TERMINAL or left_s <= 0:
                return event
            await asyncio.sleep(min(poll_s, left_s))
            poll_s = min(poll_s * 1.5, _LAST_POLL_S)

    async def newest(self, namespace: Namespace, *, limit: int) -> tuple[MemoryEvent, ...]:
        """The namespace's newest events; those that expired drop out of the index on the way."""
        found: list[MemoryEvent] = []
        async for event_id, row in self._rows(namespace):
            if row is None:
                with redis_errors():
                    await self._redis.zrem(self.index(namespace), event_id)
            elif _inside(row, namespace):
                found.append(_event(row))
            if len(found) == limit:
                break
        return tuple(found)

    async def forget(self, namespace: Namespace) -> Forgotten:
        """Delete the namespace's events, waiting writes, journals and dead letters. A running write loses its lease."""
        ids = [event_id async for event_id, row in self._rows(namespace) if row is not None and _inside(row, namespace)]
        index = self.index(namespace)
        statuses = [await self._queue.forget(namespace.lane(), event_id, index=index) for event_id in ids]
        waiting = sum(status is not None and status not in _TERMINAL for status in statuses)
        return Forgotten(events=len(ids), waiting=waiting)

    def index(self, namespace: Namespace) -> str:
        """The sorted set of the events of the namespace's user."""
        return self._keys.of_name(namespace.lane()).events_of(namespace.tenant, namespace.user_id)

    async def _rows(self, namespace: Namespace) -> AsyncIterator[tuple[str, _Row | None]]:
        for event_id in await self._ids(self.index(namespace)):
            yield event_id, await self._row(event_id)

    async def _ids(self, index: str) -> Sequence[str]:
        """All ids, newest first."""
        with redis_errors():
            ids = await self._redis.zrange(index, 0, -1, desc=True)  # pyright: ignore[reportUnknownMemberType]
        return [text(id_) for id_ in cast(Sequence[object], ids)]

    async def _row(self, event_id: str) -> _Row | None:
        with redis_errors():
            values = await self._redis.hmget(self._keys.job(event_id), list(_FIELDS))
        texts = ["" if value is None else text(value) for value in values]
        tenant, agent_id, run_id, record, status, failures, error = texts
        return _Row(tenant, agent_id, run_id, record, status, int(failures or 0), error) if record else None


def _inside(row: _Row, namespace: Namespace) -> bool:
    """Whether the event belongs to the namespace: ids that the namespace leaves open match anything."""
    return namespace.agent_id in (None, row.agent_id) and namespace.run_id in (None, row.run_id)


def _event(row: _Row) -> MemoryEvent:
    """The record, with what the queue knows better while the write is not done."""
    event = MemoryEvent.model_validate_json(row.record)
    if event.status in _TERMINAL:
        return event
    live = {"status": row.status, "attempts": row.failures, "error": row.error or None}
    return MemoryEvent.model_validate(event.model_dump() | live)
