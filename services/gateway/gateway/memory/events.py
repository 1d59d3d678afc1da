"""Stores the event of every memory write: reads, lists, awaits and erases them."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.queue import LaneQueue
from memloop.wire.errors import NotFound, OtherTenants
from memloop.wire.memory import Namespace, Scope
from memloop.wire.memory_events import ENDED, MemoryEvent
from memloop_state.link import State
from memloop_state.steps import Partitions, id_at


def event_id(lane: str, digits: str) -> str:
    """Make the id of a memory write in a lane from 32 hex digits, of which 30 are kept."""
    return id_at("evt_", lane, digits)


_NONE = "Event {!r} not found."
_FIRST_POLL_S = 0.02
_LAST_POLL_S = 0.5
_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The number of deleted events, and of writes among them that had not finished."""

    events: int
    waiting: int


class _Row(NamedTuple):
    """The fields of a job's hash that an event shows."""

    tenant: str
    agent_id: str
    run_id: str
    record: str
    status: str
    failures: str
    error: str


class MemoryEvents:
    """Reads and deletes a tenant's event records. Methods raise Unavailable."""

    def __init__(self, state: State, queue: LaneQueue) -> None:
        self._queue = queue
        self._keys = Partitions(state)

    async def get(self, tenant: str, event_id: str) -> MemoryEvent:
        """Return the event. Raises NotFound when the tenant has no such event."""
        row = await self._row(event_id)
        if row is None or not event_id.startswith("evt_"):
            raise NotFound(_NONE.format(event_id), param="event_id")
        if row.tenant != tenant:
            raise OtherTenants(_NONE.format(event_id), param="event_id")
        return _event(row)

    async def wait(self, tenant: str, event_id: str, *, timeout_s: float) -> MemoryEvent:
        """Return the event once it has ended, or its state after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        poll_s = _FIRST_POLL_S
        while True:
            event = await self.get(tenant, event_id)
            left_s = deadline - time.monotonic()
            if event.status in ENDED or left_s <= 0:
                return event
            await asyncio.sleep(min(poll_s, left_s))
            poll_s = min(poll_s * 1.5, _LAST_POLL_S)

    async def newest(self, namespace: Namespace, *, limit: int) -> tuple[MemoryEvent, ...]:
        """Return the namespace's newest events; expired ones are removed from the index."""
        found: list[MemoryEvent] = []
        async for event_id, row in self._rows(namespace):
            if row is None:
                await self._queue.indexes.remove(self._keys.writes_of(namespace), event_id)
            elif _inside(row, namespace):
                found.append(_event(row))
            if len(found) == limit:
                break
        return tuple(found)

    async def forget(self, namespace: Namespace) -> Forgotten:
        """Delete the namespace's events, waiting writes, journals and dead letters. A running write loses its lease."""
        ids = [event_id async for event_id, _ in self._within(namespace)]
        statuses = [(await self._queue.forget(namespace.lane(), event_id))[0] for event_id in ids]
        await self._queue.indexes.remove(self._keys.of_name(namespace.lane()).key("kept-events"), *ids)
        waiting = sum(status is not None and status not in ENDED for status in statuses)
        return Forgotten(events=len(ids), waiting=waiting)

    async def would_forget(self, namespace: Namespace) -> Forgotten:
        """Count what an erasure would delete, and delete nothing."""
        statuses = [row.status async for _, row in self._within(namespace)]
        return Forgotten(events=len(statuses), waiting=sum(status not in ENDED for status in statuses))

    async def waiting_users(self, scope: Scope) -> list[str]:
        """Return the users of the scope with writes that are not finished, each once. Other tenants' are not read."""
        users: dict[str, None] = {}
        prefix = f"{scope.tenant}/"
        async for lanes in self._queue.lanes_of(scope.tenant, prefix=prefix):
            found = lanes if scope.agent_id is scope.run_id is None else await self._written_in(scope, lanes)
            users |= dict.fromkeys(lane.removeprefix(prefix) for lane in found)
        return list(users)

    async def _written_in(self, scope: Scope, lanes: Sequence[str]) -> Iterable[str]:
        """Return the lanes with a write of the scope's agent and run."""
        jobs = [(lane, job) for lane, ids in zip(lanes, await self._queue.jobs_of(lanes), strict=True) for job in ids]
        found: dict[str, None] = {}
        for start in range(0, len(jobs), _READ_AT_ONCE):
            some = jobs[start : start + _READ_AT_ONCE]
            rows = await self._queue.jobs.some([job for _, job in some], ["agent_id", "run_id"])
            found |= dict.fromkeys(
                lane
                for (lane, _), (agent, run) in zip(some, rows, strict=True)
                if scope.agent_id in (None, agent) and scope.run_id in (None, run)
            )
        return found

    async def _rows(self, namespace: Namespace) -> AsyncIterator[tuple[str, _Row | None]]:
        for event_id in await self._queue.indexes.ids(self._keys.writes_of(namespace), newest=True):
            yield event_id, await self._row(event_id)

    async def _within(self, namespace: Namespace) -> AsyncIterator[tuple[str, _Row]]:
        async for event_id, row in self._rows(namespace):
            if row is not None and _inside(row, namespace):
                yield event_id, row

    async def _row(self, event_id: str) -> _Row | None:
        row = _Row(*await self._queue.jobs.get(event_id, *_Row._fields))
        return row if row.record else None


def _inside(row: _Row, namespace: Namespace) -> bool:
    """Return whether the event belongs to the namespace; ids that the namespace omits match anything."""
    return namespace.agent_id in (None, row.agent_id) and namespace.run_id in (None, row.run_id)


def _event(row: _Row) -> MemoryEvent:
    """Return the record, with the queue's current state while the write is unfinished."""
    event = MemoryEvent.model_validate_json(row.record)
    if event.status in ENDED:
        return event
    live = {"status": row.status, "attempts": int(row.failures or 0), "error": row.error or None}
    return MemoryEvent.model_validate(event.model_dump() | live)
