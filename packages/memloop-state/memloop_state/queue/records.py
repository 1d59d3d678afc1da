"""Reads the records of jobs: fields of their hashes, by job id."""

from collections.abc import Sequence
from typing import Any, TypeVar

from redis.asyncio import Redis

from memloop.wire.base import Wire
from memloop_state.link import redis_errors
from memloop_state.queue.key_names import Keys
from memloop_state.scripts import text

W = TypeVar("W", bound=Wire)


class JobRecords:
    """The jobs of all queues. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self.keys = Keys(redis)

    async def some(self, job_ids: Sequence[str], names: Sequence[str]) -> list[list[str]]:
        """Return these fields of each job in one round trip, empty where there is none."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            for job_id in job_ids:
                pipeline.hmget(self.keys.job(job_id), list(names))
            with redis_errors():
                rows: list[Any] = await pipeline.execute()
        return [["" if value is None else text(value) for value in row] for row in rows]

    async def get(self, job_id: str, *names: str) -> list[str]:
        """Return these fields of a job, empty where there is none."""
        (row,) = await self.some([job_id], names)
        return row

    async def payload(self, job_id: str, kind: type[W]) -> W | None:
        """Return a job's payload, None when the job is over or gone."""
        (payload,) = await self.get(job_id, "payload")
        return kind.model_validate_json(payload) if payload else None
