"""Names the Redis keys of the queues.

A job shares a tag with its queue, lane, journal, events and index, so that one script may change them. A memory write
takes its place from its user, whose writes share a lane; a file from its tenant; a webhook from its read, since one
step may end both. A read's digits are random, so that a tenant's reads spread over the cluster.
"""

from dataclasses import dataclass
from typing import TypeVar

from redis.asyncio import Redis

from memloop_state.partitions import Partition, Partitions, name_digest
from memloop_state.scripts import Steps


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


J_co = TypeVar("J_co", bound=JobPartition, covariant=True)


class JobKeys(Partitions[J_co]):
    """The partitions of one Redis, with the keys of jobs and of the slice whose jobs they are."""

    def job(self, job_id: str) -> str:
        """Name the hash of a job."""
        return self.of_id(job_id).job(job_id)


class Keys(JobKeys[JobPartition]):
    """The partitions of one Redis, with the keys of jobs."""

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, JobPartition)


def lane_steps(redis: Redis) -> Steps:
    """Return the steps of lanes and jobs: ``lua/lanes.lua``."""
    return Steps(redis, "owners", "guard", "turns", "lanes")
