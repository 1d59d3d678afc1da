"""The records of jobs.

A job shares a tag with its queue, lane, journal, events and index, so that one script may change them. A memory write
takes its place from its user, whose writes share a lane; a file from its tenant; a webhook from its read, since one
step may end both. A read's digits are random, so that a tenant's reads spread over the cluster.

The bytes that unfinished jobs hold: of its tenant's quota, from a job's queueing to its end.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from memloop.wire.base import Wire
from memloop_state.link import State, all_sent, sent
from memloop_state.partitions import Partitions
from memloop_state.scripts import Steps, text


@dataclass(frozen=True, slots=True)
class QueuedBytes:
    """The bytes that the unfinished jobs of all queues hold: of all tenants, and of the one with the most."""

    total: int
    largest_tenant: int


async def queued_bytes(redis: State) -> QueuedBytes:
    """Add up the bytes of every tenant. Raises Unavailable."""
    tenants: Counter[str] = Counter()
    for partition in Partitions(redis).partitions:
        found: Mapping[object, object] = await sent(redis, "HGETALL", partition.key("queued-bytes"))
        tenants.update({text(tenant): int(text(size)) for tenant, size in found.items()})
    return QueuedBytes(tenants.total(), max(tenants.values(), default=0))


def lane_steps(redis: State) -> Steps:
    """Return the steps of lanes and jobs: ``lua/lanes.lua``."""
    return Steps(redis, "owners", "turns", "lanes")


W = TypeVar("W", bound=Wire)


class JobRecords:
    """The jobs of all queues. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._redis: Any = redis
        self.keys = Partitions(redis)

    async def some(self, job_ids: Sequence[str], names: Sequence[str]) -> list[list[str]]:
        """Return these fields of each job in one round trip, empty where there is none."""
        rows = await all_sent(self._redis, [("HMGET", self.keys.job(job_id), *names) for job_id in job_ids])
        return [["" if value is None else text(value) for value in row] for row in rows]

    async def get(self, job_id: str, *names: str) -> list[str]:
        """Return these fields of a job, empty where there is none."""
        row: list[Any] = await sent(self._redis, "HMGET", self.keys.job(job_id), *names)
        return ["" if value is None else text(value) for value in row]

    async def payload(self, job_id: str, kind: type[W]) -> W | None:
        """Return a job's payload, None when the job is over or gone."""
        (payload,) = await self.get(job_id, "payload")
        return kind.model_validate_json(payload) if payload else None
