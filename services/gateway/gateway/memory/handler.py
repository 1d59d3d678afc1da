"""Runs the memory writes of a worker: each attempt and the last one; and queues the flushes of idle buffers."""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from gateway.memory.events import event_id
from gateway.memory.jobs import MemoryJob
from gateway.memory.memory import Memory
from gateway.memory.rounds import given_up
from gateway.memory.write import MemoryWrite, WriterTools
from gateway.metrics import Metrics
from gateway.queue import Hold, JobCancelled, JobGone, JobResult, LaneLost, Lease, RunnerOptions, job_of
from memloop.wire.errors import Conflict, MemloopError
from memloop.wire.memory import Namespace

_LOG = logging.getLogger(__name__)
_LOOKS_PER_AGE = 4
_LONGEST_PAUSE_S = 60.0
_MOST_AT_ONCE = 100


class MemoryHandler:
    """Runs memory writes. After the last attempt of a write, its undecided turns are kept verbatim if the store can."""

    def __init__(
        self,
        memory: Memory,
        metrics: Metrics,
        tools_for: Callable[[Namespace], WriterTools],
        *,
        options: RunnerOptions,
        keep_s: float,
        redecisions: int = 0,
    ) -> None:
        """``tools_for`` chooses the model that decides over a namespace's turns.

        ``keep_s``: how long a write that was given up can be put back, and one that was kept verbatim decided again.
        ``redecisions``: how often the latter is decided again by itself.
        """
        self._lanes = memory.queue.lanes
        self._metrics = metrics
        self._tools_for = tools_for
        self._options = options
        self._keep_ms = int(keep_s * 1000)
        self._failures = memory.failures
        self._kept = memory.kept
        self._redecisions = redecisions

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Run the write. Raises the errors that make it fail."""
        job = await job_of(lease, self._lanes.jobs, MemoryJob)
        tools = self._tools_for(job.namespace)
        attempt = partial(
            MemoryWrite, job, tools, hold, profile=await tools.profile_of(job.namespace), attempt=lease.failures
        )
        try:
            async with self._failures.watching(job, self._metrics):
                event = await attempt().run()
        except (LaneLost, JobGone, JobCancelled, Conflict):
            raise
        except Exception as error:
            if not job.infer or not self._options.is_last(lease, error):
                raise
            unusable = error.message if isinstance(error, MemloopError) else f"{type(error).__name__}: {error}"
            event = await attempt(unusable=unusable).run()
            await self._failures.forget(job.namespace)
            self._metrics.memory_kept_verbatim.labels("refused").inc(event.status == "kept_verbatim")
        else:
            self._metrics.memory_kept_verbatim.labels("unusable").inc(event.status == "kept_verbatim")
        if job.kept is not None:
            self._metrics.memory_redecided.labels(event.status).inc()
        await self._kept.note(job, event, again=event.redecided < self._redecisions)
        keep_ms = self._keep_ms if event.status == "kept_verbatim" else None
        return JobResult(event.status, event.model_dump_json(), keep_ms=keep_ms)

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Return the event of a write that failed; payload and journal are kept for an operator."""
        job = await job_of(lease, self._lanes.jobs, MemoryJob)
        journal = await self._lanes.journal(job.event_id).all()
        event = given_up(job, journal, attempts=attempts, error=error.message)
        await self._failures.failed(job, error)
        self._metrics.memory_dead_letters.inc()
        return JobResult(event.status, event.model_dump_json(), keep_ms=self._keep_ms, keeps_work=True)

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: a memory write cannot be cancelled; erasing it deletes the job."""
        raise JobGone(lease.job_id)


async def flush_idle_repeatedly(memory: Memory, *, age_s: float) -> None:
    """Flush idle buffers repeatedly. Every worker may do this: a flush is queued only once."""
    while True:
        try:
            await flush_idle(memory, age_s=age_s)
        except MemloopError as error:
            _LOG.warning("idle buffers: %s", error.message)
        await asyncio.sleep(min(age_s / _LOOKS_PER_AGE, _LONGEST_PAUSE_S))


async def flush_idle(memory: Memory, *, age_s: float) -> None:
    """Queue a flush of every buffer unchanged for ``age_s``. Raises the errors of store and queue."""
    before = datetime.now(UTC) - timedelta(seconds=age_s)
    for buffer in (await memory.store.idle_buffers(before, limit=_MOST_AT_ONCE)).buffers:
        # The id comes from the buffer's state, so that all workers use the same one
        state = buffer.model_dump_json(include={"namespace", "updated_at"})
        flush_id = event_id(buffer.namespace.lane(), hashlib.sha256(state.encode()).hexdigest()[:32])
        await memory.queue.enqueue(MemoryJob(event_id=flush_id, namespace=buffer.namespace))
