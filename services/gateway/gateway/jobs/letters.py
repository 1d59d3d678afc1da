"""Lists the dead letters of one tenant, page by page, over the partitions of Redis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from redis.asyncio import Redis

from gateway.memory import dead_write, requeue
from gateway.queue import Depth, JobPartition, LaneQueue
from memloop.wire.base import Wire
from memloop_service.redis_link import redis_errors
from memloop_service.redis_scripts import entry_list, text

_LOOKED_AT: Final = 500
"""How many dead letters of any tenant one request looks at."""
_WRITES_BEGIN: Final = "evt_"


class DeadLetterEntry(Wire):
    """A job that failed on its last attempt. ``failed_at`` is in seconds since the epoch."""

    job_id: str
    tenant: str
    user_id: str | None = None
    """Of a memory write."""
    error: str
    failed_at: int
    can_requeue: bool
    """Whether its data is still there; only memory writes can be put back."""


class DeadLetterPage(Wire):
    """``GET /v1/admin/dead-letters``. A page may be short or empty although ``next_cursor`` names another one."""

    object: str = "list"
    data: tuple[DeadLetterEntry, ...]
    next_cursor: str | None = None
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Jobs:
    """The queues by name, and the Redis that holds them."""

    redis: Redis
    writes: LaneQueue
    queues: Sequence[LaneQueue]

    async def put_back(self, job_id: str) -> bool:
        """Requeue the failed write. Returns False if it is not a dead letter or its turns are gone."""
        return await requeue(self.redis, self.writes, job_id)

    async def depths(self) -> list[tuple[str, Depth]]:
        """Return each queue's name and backlog."""
        return [(queue.name, await queue.depth()) for queue in self.queues]


@dataclass(frozen=True, slots=True)
class _Letter:
    """An entry of a stream of dead letters."""

    at: str
    job_id: str
    error: str

    async def shown_to(self, tenant: str, redis: Redis, lanes: LaneQueue) -> DeadLetterEntry | None:
        """Return the entry if the job is the tenant's."""
        if await tenant_of(self.job_id, redis, lanes) != tenant:
            return None
        is_write = self.job_id.startswith(_WRITES_BEGIN)
        write = await dead_write(redis, lanes, self.job_id) if is_write else None
        return DeadLetterEntry(
            job_id=self.job_id,
            tenant=tenant,
            user_id=None if write is None else write.namespace.user_id,
            error=self.error,
            failed_at=int(self.at.partition("-")[0]) // 1000,
            can_requeue=write is not None,
        )


async def tenant_of(job_id: str, redis: Redis, lanes: LaneQueue) -> str | None:
    """Return the tenant of a job; None if there is no such job."""
    with redis_errors():
        found = await redis.hget(lanes.keys.job(job_id), "tenant")
    return None if found is None else text(found)


async def page_of(tenant: str, redis: Redis, lanes: LaneQueue, *, cursor: str | None, limit: int) -> DeadLetterPage:
    """Return dead letters of the tenant after the cursor, oldest first within a partition. Raises Unavailable."""
    number, after = _place(cursor)
    found: list[DeadLetterEntry] = []
    looked_at = 0
    for index, partition in enumerate(lanes.keys.partitions[number:], start=number):
        start = f"({after}" if index == number and after else "-"
        letters = await _letters(partition, redis, start, _LOOKED_AT - looked_at)
        for letter in letters:
            looked_at += 1
            entry = await letter.shown_to(tenant, redis, lanes)
            found += [entry] if entry else []
            if len(found) == limit or looked_at == _LOOKED_AT:
                return DeadLetterPage(data=tuple(found), next_cursor=f"{index}:{letter.at}", has_more=True)
    return DeadLetterPage(data=tuple(found))


def _place(cursor: str | None) -> tuple[int, str]:
    number, _, after = (cursor or "0:").partition(":")
    return int(number), after


async def _letters(partition: JobPartition, redis: Redis, start: str, count: int) -> list[_Letter]:
    with redis_errors():
        found = cast(Sequence[object], await redis.xrange(partition.dead, min=start, count=count))
    return [_Letter(entry, fields["job"], fields["error"]) for entry, fields in entry_list(found)]
