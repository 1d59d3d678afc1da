"""The records of jobs: the names of their keys, and reading them.

A job shares a tag with its queue, lane, journal, events and index, so that one script may change them. A memory write
takes its place from its user, whose writes share a lane; a file from its tenant; a webhook from its read, since one
step may end both. A read's digits are random, so that a tenant's reads spread over the cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from memloop.wire.base import Wire
from memloop_state.link import State, redis_errors
from memloop_state.partitions import Partition, Partitions, name_digest
from memloop_state.scripts import Steps, text


@dataclass(frozen=True, slots=True)
class JobPartition(Partition):
    """The keys of jobs under one tag. ``queue`` is a queue's name, ``lane`` a lane's."""

    def stream(self, queue: str) -> str:
        """Name the stream of tickets."""
        return self.key("jobs", queue)

    def turns(self, queue: str) -> str:
        """Name the sorted set of tenants with a lane that waits for a worker, in the order of their turns."""
        return self.key("turns", queue)

    def picks(self, queue: str) -> str:
        """Name the hash that counts how many lanes were taken of each of these tenants since it began to wait."""
        return self.key("picks", queue)

    def since(self, queue: str) -> str:
        """Name the sorted set of the lanes that wait for a worker, by the time since when."""
        return self.key("since", queue)

    def bell(self, queue: str) -> str:
        """Name the list that holds one element while a lane waits, so that idle workers wake up."""
        return self.key("bell", queue)

    @property
    def queued_bytes(self) -> str:
        """The hash of the bytes that each tenant's unfinished jobs hold, over all queues."""
        return self.key("queued-bytes")

    def waiting(self, queue: str) -> str:
        """Name the sorted set of unfinished jobs, by time."""
        return self.key("open", queue)

    def lane(self, queue: str, lane: str) -> str:
        """Name the list of a lane's jobs."""
        return self.key("lane", queue, lane)

    def lock(self, queue: str, lane: str) -> str:
        """Name the lock whose value is the lane's holder."""
        return self.key("lock", queue, lane)

    def changed(self, queue: str, lane: str) -> str:
        """Name the time at which a job of the lane last ended or an erasure began, kept for a minute after either."""
        return self.key("changed", queue, name_digest(lane))

    @property
    def fence(self) -> str:
        """The counter of fencing tokens."""
        return self.key("fence")

    @property
    def dead(self) -> str:
        """The stream of dead letters."""
        return self.key("dead")

    def job(self, job_id: str) -> str:
        """Name the hash of a job: payload, record, status, counters."""
        return self.key("job", job_id)

    def journal(self, job_id: str) -> str:
        """Name the hash of the replies and decisions that a job has already made."""
        return self.key("journal", job_id)

    def read_events(self, job_id: str) -> str:
        """Name the stream of a job's events, such as a read's."""
        return self.key("read-events", job_id)

    @property
    def kept_events(self) -> str:
        """The sorted set of the writes here that were kept verbatim, by the time since when."""
        return self.key("kept-events")


J_co = TypeVar("J_co", bound=JobPartition, covariant=True)


class JobKeys(Partitions[J_co]):
    """The partitions of one Redis, with the keys of jobs and of the slice whose jobs they are."""

    def job(self, job_id: str) -> str:
        """Name the hash of a job."""
        return self.of_id(job_id).job(job_id)


class Keys(JobKeys[JobPartition]):
    """The partitions of one Redis, with the keys of jobs."""

    def __init__(self, redis: State) -> None:
        super().__init__(redis, JobPartition)


def lane_steps(redis: State) -> Steps:
    """Return the steps of lanes and jobs: ``lua/lanes.lua``."""
    return Steps(redis, "owners", "turns", "lanes")


W = TypeVar("W", bound=Wire)


class JobRecords:
    """The jobs of all queues. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._redis: Any = redis
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
        with redis_errors():
            row: list[Any] = await self._redis.hmget(self.keys.job(job_id), list(names))
        return ["" if value is None else text(value) for value in row]

    async def payload(self, job_id: str, kind: type[W]) -> W | None:
        """Return a job's payload, None when the job is over or gone."""
        (payload,) = await self.get(job_id, "payload")
        return kind.model_validate_json(payload) if payload else None
