"""What a memory write that went wrong leaves behind: for its user's next chat, for readiness, for a second decision.

Of a write that failed there are two small records, each with an end of its own, none with a user's text: the last
failed write of a user, and the last refusal of the engine. The next write of that user that succeeds deletes both.
``pending`` reads the first beside the user's queued writes.

A write whose turns were kept verbatim is decided again when a client asks, and by itself once the writer works again.
The job keeps its id. It reads the kept memories when it runs, replaces them by what the writer decides, and leaves them
as they are if its reply is unusable again. An erased write has no record any more, so nothing decides on it again.

A record that cannot be kept or read never fails a write or a chat.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from gateway.memory.jobs import MemoryJob, MemoryQueue
from gateway.memory.kept_turns import KEPT
from gateway.metrics import Metrics
from gateway.queue import JobRecords
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, DependencyError, EngineError, MemloopError, NotFound, OtherTenants
from memloop.wire.memory import MemoryItem, Namespace, Scope
from memloop.wire.memory_events import MemoryEvent
from memloop_state.link import State
from memloop_state.steps import Partition, Partitions
from memloop_state.values import Indexes, Values

_LOG = logging.getLogger(__name__)
_KEEP_S: Final = 24 * 3600
_CODE_CHARS: Final = 64
_PASSING: Final = frozenset({408, 425, 429})
_WAYS_OUT: Final = {
    401: "set MEMLOOP_ENGINE_API_KEY",
    403: "set MEMLOOP_ENGINE_API_KEY to a key that may use the model",
    404: "set MEMLOOP_ENGINE_URL and MEMLOOP_MODEL",
}
_SEND_OTHERWISE: Final = "set MEMLOOP_ENGINE_DIALECT, or a writer model that calls tools"
_GUIDE: Final = "docs/how-to/endpoints.md"


class FailedWrite(Wire):
    """The last failed write of a user."""

    event_id: str
    code: str
    at: datetime

    def summary(self) -> str:
        """The sentence for the user's next chat."""
        when = self.at.strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"An earlier turn is not remembered: its memory write {self.event_id} failed at {when} ({self.code})."


class _Refusal(Wire):
    """The engine's last refusal of a write."""

    status: int
    code: str

    def summary(self) -> str:
        """The sentence for an operator, with the way out."""
        way_out = _WAYS_OUT.get(self.status, _SEND_OTHERWISE)
        return f"the engine refuses memory writes ({self.status} {self.code}): {way_out}; see {_GUIDE}"


def failed_writes(state: State) -> Values:
    """Return the last failed write of each user, by lane."""
    return Values(state, "failed-write", keep_s=_KEEP_S)


class WriteFailures:
    """The records of all users."""

    def __init__(self, state: State) -> None:
        self._failed = failed_writes(state)
        self._refusals = Values(state, "writes-refused", keep_s=_KEEP_S)

    @asynccontextmanager
    async def watching(self, job: MemoryJob, metrics: Metrics) -> AsyncGenerator[None]:
        """Keep what becomes of one attempt of a write: the engine's refusal at once, a success by deleting both."""
        try:
            yield
        except EngineError as error:
            if is_refusal(error):
                metrics.memory_writes_refused.labels(error.engine_status).inc()
                refusal = _Refusal(status=error.engine_status, code=_code(error))
                record = refusal.model_dump_json()
                with suppress(DependencyError):
                    if await self._refusals.put("", record) != record:
                        _LOG.error("%s", refusal.summary())
                await self.failed(job, error)
            raise
        if job.infer:
            with suppress(DependencyError):
                await asyncio.gather(
                    self._failed.delete(job.namespace.lane(), quick=True), self._refusals.delete("", quick=True)
                )

    async def failed(self, job: MemoryJob, error: MemloopError) -> None:
        """Keep the write as its user's last failed one."""
        record = FailedWrite(event_id=job.event_id, code=_code(error), at=datetime.now(UTC))
        with suppress(DependencyError):
            await self._failed.put(job.namespace.lane(), record.model_dump_json())

    async def warning(self) -> str | None:
        """The engine's last refusal with the way out, for readiness."""
        found = await self._refusals.get("")
        return _Refusal.model_validate_json(found).summary() if found is not None else None

    async def forget(self, namespace: Namespace) -> None:
        """Delete the user's record; replicas then have all earlier deletions of the user's jobs. Raises Unavailable."""
        await self._failed.delete(namespace.lane())


def _code(error: MemloopError) -> str:
    return (error.code or "failed")[:_CODE_CHARS]


def is_refusal(error: EngineError) -> bool:
    """Whether the engine refused the request, and will refuse the next one like it."""
    return 400 <= error.engine_status < 500 and error.engine_status not in _PASSING


_NO_MORE: Final = 1 << 52
"""Added to the time of an event that is not decided again by itself any more: no time of a clock is above it."""
_AT_ONCE: Final = 20
_KEEP_DECIDED_S: Final = 30 * 24 * 3600
"""After so long without a usable decision, the next one is waited for."""
_READ_AT_ONCE: Final = 500
_WAITS: Final = {"status": "queued", "completed_at": None, "error": None}
_HELD: Final = frozenset({"kept_verbatim", "queued", "in_progress"})


class KeptEvents:
    """The writes that were kept verbatim, by the time since when.

    A write enters before its event ends. One that has expired, was erased or is decided is taken out when it is met.
    """

    def __init__(self, state: State) -> None:
        self._keys = Partitions(state)
        self._indexes = Indexes(state)
        self._jobs = JobRecords(state)
        self._decided = Values(state, "writer-decided", keep_s=_KEEP_DECIDED_S)
        """The time in ms of the last usable decision."""

    async def note(self, job: MemoryJob, event: MemoryEvent, *, again: bool) -> None:
        """Note how a write ends. One that was kept is decided ``again`` by itself once the writer decides others.

        The write ends all the same where the state is full, and does not take the note: a client can still name it.
        """
        index, now_ms = self._keys.of_id(event.event_id).key("kept-events"), time.time_ns() // 1_000_000
        with suppress(DependencyError):
            if event.status == "kept_verbatim" and _kept_of(event):
                await self._indexes.add(index, {event.event_id: now_ms if again else now_ms + _NO_MORE})
            elif job.kept is not None:
                await self._indexes.remove(index, event.event_id)
            if event.status == "completed" and event.decisions:
                await self._decided.put("", str(now_ms))

    async def redecide(self, queue: MemoryQueue, event_id: str, *, tenant: str) -> None:
        """Queue a new decision on the kept turns of a write, at the end of its user's lane.

        Raises NotFound, Conflict for a write that was not kept verbatim, Unavailable while the state is nearly full.
        """
        with queue.lanes.rules.counted(queue.lanes.name):
            await queue.lanes.rules.quota_bytes()
        missing = f"Event {event_id!r} not found."
        owner, status, record = await self._jobs.get(event_id, "tenant", "status", "record")
        if not record or not event_id.startswith("evt_"):
            raise NotFound(missing, param="event_id")
        if owner != tenant:
            raise OtherTenants(missing, param="event_id")
        job = _job_of(MemoryEvent.model_validate_json(record), tenant) if status == "kept_verbatim" else None
        if (
            job is None
            or job.kept is None
            or not await queue.lanes.requeue(
                job.namespace.lane(),
                event_id,
                record=job.kept.model_copy(update=_WAITS).model_dump_json(),
                created_ms=job.created_ms,
                payload=job.model_dump_json(),
                former=record,
            )
        ):
            raise Conflict("Only a write that was kept verbatim can be decided again.", code="write_not_kept_verbatim")

    async def redecide_due(self, queue: MemoryQueue) -> int:
        """Queue new decisions on writes that were kept before the writer decided another one: 20 of each partition.

        Returns how many. Raises Unavailable.
        """
        if (decided_ms := await self._decided.get("")) is None:
            return 0
        queued = 0
        for part in self._keys.partitions:
            found = await self._indexes.due(part.key("kept-events"), int(decided_ms), most=_AT_ONCE)
            for event_id, tenant in await self._kept(part, found):
                queued += await self._queued(queue, event_id, tenant)
        return queued

    async def redecide_some(self, queue: MemoryQueue, scope: Scope, *, most: int) -> tuple[list[str], bool]:
        """Queue new decisions on kept writes of the scope. Returns their ids, and whether there may be more."""
        queued: list[str] = []
        for part in self._keys.partitions:
            start = 0
            while True:
                found = await self._indexes.ids(part.key("kept-events"), start=start, most=_READ_AT_ONCE)
                for event_id, _ in await self._kept(part, found, of=scope):
                    if len(queued) == most:
                        return queued, True
                    queued += [event_id] if await self._queued(queue, event_id, scope.tenant) else []
                if len(found) < _READ_AT_ONCE:
                    break
                start += _READ_AT_ONCE
        return queued, False

    async def _queued(self, queue: MemoryQueue, event_id: str, tenant: str) -> bool:
        try:
            await self.redecide(queue, event_id, tenant=tenant)
        except (NotFound, Conflict):
            return False
        return True

    async def _kept(self, part: Partition, ids: Sequence[str], *, of: Scope | None = None) -> list[tuple[str, str]]:
        """Return the events that wait for a decision, with their tenants; what has ended otherwise is taken out."""
        kept = list[tuple[str, str]]()
        rows = await self._jobs.some(ids, ["tenant", "status", "user_id", "agent_id", "run_id"])
        for event_id, (tenant, status, *names) in zip(ids, rows, strict=True):
            if status not in _HELD:
                await self._indexes.remove(part.key("kept-events"), event_id)
            elif status == "kept_verbatim":
                wanted = () if of is None else (of.tenant, of.user_id, of.agent_id, of.run_id)
                if all(want in (None, name) for want, name in zip(wanted, (tenant, *names), strict=False)):
                    kept.append((event_id, tenant))
        return kept


def _kept_of(event: MemoryEvent) -> list[MemoryItem]:
    return [written.item for written in event.memories if written.item.memory_type == KEPT]


def _job_of(event: MemoryEvent, tenant: str) -> MemoryJob | None:
    """Return the job that decides again; None for an event without kept memories."""
    if not (kept := _kept_of(event)):
        return None
    first = kept[0]
    return MemoryJob(
        event_id=event.event_id,
        namespace=Namespace(tenant=tenant, user_id=first.user_id, agent_id=first.agent_id, run_id=first.run_id),
        metadata=first.metadata,
        timestamp=max(item.valid_from for item in kept),
        expires_at=min((item.expires_at for item in kept if item.expires_at), default=None),
        created_at=event.created_at,
        redacted=event.redacted,
        kept=event,
    )
