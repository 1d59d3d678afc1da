"""Runs the memory writes of a worker: what becomes of each attempt, and of the last one."""

from collections.abc import Callable

from gateway.memory.jobs import MemoryJob
from gateway.memory.memory import Memory
from gateway.memory.rounds import given_up
from gateway.memory.write import MemoryWrite, WriterTools
from gateway.metrics import Metrics
from gateway.queue import Hold, JobCancelled, JobGone, JobResult, LaneLost, Lease, RunnerOptions
from memloop.wire.errors import Conflict, MemloopError
from memloop.wire.memory import Namespace


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
        job = await self._job(lease.job_id)
        tools = await self._tools_for(job.namespace).under_policy(job.namespace)
        try:
            async with self._failures.watching(job, self._metrics):
                event = await MemoryWrite(job, tools, hold, attempt=lease.failures).run()
        except (LaneLost, JobGone, JobCancelled, Conflict):
            raise
        except Exception as error:
            if not job.infer or not self._options.is_last(lease, error):
                raise
            unusable = error.message if isinstance(error, MemloopError) else f"{type(error).__name__}: {error}"
            event = await MemoryWrite(job, tools, hold, attempt=lease.failures, unusable=unusable).run()
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
        job = await self._job(lease.job_id)
        journal = await self._lanes.journal(job.event_id).all()
        event = given_up(job, journal, attempts=attempts, error=error.message)
        await self._failures.failed(job, error)
        self._metrics.memory_dead_letters.inc()
        return JobResult(event.status, event.model_dump_json(), keep_ms=self._keep_ms, keeps_work=True)

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: a memory write cannot be cancelled; erasing it deletes the job."""
        raise JobGone(lease.job_id)

    async def _job(self, job_id: str) -> MemoryJob:
        if (job := await self._lanes.jobs.payload(job_id, MemoryJob)) is None:
            raise JobGone(job_id)
        return job
