"""The worker's side of the memory queue: a job is one :class:`gateway.memory.writer.MemoryWrite`."""

from gateway.memory.jobs import MemoryJob
from gateway.memory.writer import MemoryWrite, WriterTools, failed_event
from gateway.queue.handling import Ending, Hold
from gateway.queue.lanes import JobGone, Lease
from gateway.redis.key_names import Keys
from gateway.redis.lua import redis_errors, text
from memloop.wire.errors import MemloopError

_FOR_EVER = 0


class MemoryHandler:
    """Runs memory writes."""

    def __init__(self, tools: WriterTools) -> None:
        self._tools = tools
        self._keys = Keys(tools.redis)

    async def run(self, lease: Lease, hold: Hold) -> Ending:
        """The write, done. Raises what makes it fail."""
        job = await self._job(lease.job_id)
        event = await MemoryWrite(job, self._tools, hold, attempt=lease.failures).run()
        return Ending("completed", event.model_dump_json())

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> Ending:
        """The failed event; payload and journal stay, the raw turns are in the store."""
        job = await self._job(lease.job_id)
        event = await failed_event(job, self._tools.redis, attempts=attempts, error=error.message)
        self._tools.metrics.memory_dead_letters.inc()
        return Ending("failed", event.model_dump_json(), keep_ms=_FOR_EVER)

    async def cancelled(self, lease: Lease) -> Ending:
        """Nobody can cancel a memory write; erasing it deletes the job."""
        raise JobGone(lease.job_id)

    async def _job(self, job_id: str) -> MemoryJob:
        with redis_errors():
            payload = await self._tools.redis.hget(self._keys.job(job_id), "payload")
        if payload is None:
            raise JobGone(job_id)
        return MemoryJob.model_validate_json(text(payload))
