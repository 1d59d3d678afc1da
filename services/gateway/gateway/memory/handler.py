"""Runs the memory writes of a worker, each attempt and the last one, and keeps what a write that went wrong leaves.

Of a write that failed there are two small records, each with an end of its own, none with a user's text: the last
failed write of a user, and the last refusal of the engine. The next write of that user that succeeds deletes both.
``pending`` reads the first beside the user's queued writes. A record that cannot be kept or read never fails a write or
a chat.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from gateway.memory.jobs import MemoryJob
from gateway.memory.kept_turns import KeptEvents, last_decision
from gateway.memory.rounds import given_up
from gateway.memory.write import MemoryWrite, WriterTools
from gateway.metrics import Metrics
from gateway.queue import Hold, JobCancelled, JobGone, JobResult, LaneLost, LaneQueue, Lease, RunnerOptions
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, DependencyError, EngineError, MemloopError
from memloop.wire.memory import Namespace
from memloop_state.link import State, all_sent
from memloop_state.steps import Values

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemoryHandler:
    """Runs memory writes. After the last attempt of a write, its undecided turns are kept verbatim if the store can."""

    lanes: LaneQueue
    metrics: Metrics
    tools_for: Callable[[Namespace], WriterTools]
    """Chooses the model that decides over a namespace's turns."""
    failures: "WriteFailures"
    kept: KeptEvents
    options: RunnerOptions
    keep_ms: int
    """How long a write that was given up can be put back, and one that was kept verbatim decided again."""
    redecisions: int
    """How often the latter is decided again by itself."""

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Run the write. Raises the errors that make it fail."""
        job = await self.lanes.jobs.leased(lease, MemoryJob)
        tools = self.tools_for(job.namespace)
        attempt = partial(
            MemoryWrite, job, tools, hold, profile=await tools.profile_of(job.namespace), attempt=lease.failures
        )
        try:
            event = await attempt().run()
        except (LaneLost, JobGone, JobCancelled, Conflict):
            raise
        except Exception as error:
            if isinstance(error, EngineError) and is_refusal(error):
                self.metrics.memory_writes_refused.labels(error.engine_status).inc()
                await self.failures.refused(job, error)
            if not job.infer or not self.options.is_last(lease, error):
                raise
            unusable = error.message if isinstance(error, MemloopError) else f"{type(error).__name__}: {error}"
            event = await attempt(unusable=unusable).run()
            await self.failures.forget(job.namespace)
            self.metrics.memory_kept_verbatim.labels("refused").inc(event.status == "kept_verbatim")
        else:
            if job.infer:
                decided = event.status == "completed" and bool(event.decisions)
                await self.failures.over(job.namespace, decided=decided)
            self.metrics.memory_kept_verbatim.labels("unusable").inc(event.status == "kept_verbatim")
        if job.kept is not None:
            self.metrics.memory_redecided.labels(event.status).inc()
        if job.kept is not None or event.status == "kept_verbatim":
            await self.kept.note(event, again=event.redecided < self.redecisions)
        keep_ms = self.keep_ms if event.status == "kept_verbatim" else None
        return JobResult(event.status, event.model_dump_json(), keep_ms=keep_ms)

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Return the event of a write that failed; payload and journal are kept for an operator."""
        job = await self.lanes.jobs.leased(lease, MemoryJob)
        journal = await self.lanes.journal(job.event_id).all()
        event = given_up(job, journal, attempts=attempts, error=error.message)
        await self.failures.failed(job, error)
        self.metrics.memory_dead_letters.inc()
        return JobResult(event.status, event.model_dump_json(), keep_ms=self.keep_ms, keeps_work=True)

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: a memory write cannot be cancelled; erasing it deletes the job."""
        raise JobGone(lease.job_id)


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
        self._state = state
        self._failed = failed_writes(state)
        self._refusals = Values(state, "writes-refused", keep_s=_KEEP_S)
        self._decided = last_decision(state)

    async def refused(self, job: MemoryJob, error: EngineError) -> None:
        """Keep the engine's refusal of a write, log a new one, and keep the write as its user's last failed one."""
        refusal = _Refusal(status=error.engine_status, code=_code(error))
        record = refusal.model_dump_json()
        with suppress(DependencyError):
            if await self._refusals.put("", record) != record:
                _LOG.error("%s", refusal.summary())
        await self.failed(job, error)

    async def over(self, namespace: Namespace, *, decided: bool) -> None:
        """Delete both records: a write of the user has succeeded.

        If the writer ``decided`` it just now, note the time, so that what was kept verbatim before is decided again.
        """
        commands = [self._failed.deleting(namespace.lane()), self._refusals.deleting("")]
        if decided:
            commands.append(self._decided.putting("", str(time.time_ns() // 1_000_000)))
        with suppress(DependencyError):
            await all_sent(self._state, commands)

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
