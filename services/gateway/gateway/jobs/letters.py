"""The backlog of each queue, and the dead letters of one tenant, page by page over the partitions; their routes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Query

from gateway.access import ManagedTenant, PrincipalDep, Room, needs
from gateway.memory import dead_write, requeue
from gateway.queue import LaneQueue
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, NotFound, OtherTenants
from memloop.wire.lists import CursorPage, Listed
from memloop_service import ERRORS, of_app

_LOOKED_AT: Final = 500
"""How many dead letters of any tenant one request looks at."""
_WRITES_BEGIN: Final = "evt_"


class QueueDepth(Wire):
    """The backlog of a queue over all tenants. Times are in seconds since the epoch, null if the queue is empty."""

    queue: str
    jobs: int
    oldest_created_at: int | None = None
    waiting_since: int | None = None
    """Since when the first job has waited for a worker."""
    tenants_waiting: int = 0


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


class DeadLetterPage(CursorPage[DeadLetterEntry]):
    """``GET /v1/admin/dead-letters``. A page may be short or empty although ``next_cursor`` names another one."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The queues, that of memory writes among them."""

    writes: LaneQueue
    queues: Sequence[LaneQueue]

    async def depths(self) -> list[QueueDepth]:
        """Return each queue's backlog."""
        return [
            QueueDepth(
                queue=queue.name,
                jobs=depth.jobs,
                oldest_created_at=_seconds(depth.oldest_created_ms),
                waiting_since=_seconds(depth.waiting_since_ms),
                tenants_waiting=depth.tenants,
            )
            for queue in self.queues
            for depth in [await queue.depth()]
        ]


def is_write(job_id: str) -> bool:
    """Return whether the job is a memory write."""
    return job_id.startswith(_WRITES_BEGIN)


async def tenant_of(job_id: str, lanes: LaneQueue) -> str | None:
    """Return the tenant of a job; None if there is no such job."""
    return (await lanes.jobs.get(job_id, "tenant"))[0] or None


def _seconds(ms: int | None) -> int | None:
    return None if ms is None else ms // 1000


Cursor: TypeAlias = Annotated[str | None, Query(pattern="^[0-9]{1,4}:[0-9]{1,15}-[0-9]{1,15}$")]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=100)]

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


class QueuePage(Listed[QueueDepth]):
    """``GET /v1/admin/queues``."""


class Requeued(Wire):
    """``POST /v1/admin/dead-letters/{job_id}/requeue``."""

    job_id: str
    status: str = "queued"


JobsDep: TypeAlias = Annotated[Jobs, of_app("jobs")]


@router.get("/queues")
async def list_queues(jobs: JobsDep, principal: PrincipalDep) -> QueuePage:
    """Return the backlog of each queue. It is that of all tenants: with configured keys only operators may see it."""
    principal.require_operator("Only operator keys may list the queues of all tenants.")
    return QueuePage(data=tuple(await jobs.depths()))


@router.get("/dead-letters")
async def list_dead_letters(
    jobs: JobsDep, tenant: ManagedTenant, cursor: Cursor = None, limit: Limit = 50
) -> DeadLetterPage:
    """List a tenant's jobs that failed on their last attempt."""
    first, _, after = (cursor or "0:").partition(":")
    number = int(first)
    found: list[DeadLetterEntry] = []
    looked_at = 0
    for index, partition in enumerate(jobs.writes.keys.partitions[number:], start=number):
        place = after if index == number else ""
        for letter in await jobs.writes.letters.page(partition, after=place, count=_LOOKED_AT - looked_at):
            looked_at += 1
            if await tenant_of(letter.job_id, jobs.writes) == tenant:
                write = await dead_write(jobs.writes, letter.job_id) if is_write(letter.job_id) else None
                found.append(
                    DeadLetterEntry(
                        job_id=letter.job_id,
                        tenant=tenant,
                        user_id=None if write is None else write.namespace.user_id,
                        error=letter.error,
                        failed_at=int(letter.entry.partition("-")[0]) // 1000,
                        can_requeue=write is not None,
                    )
                )
            if len(found) == limit or looked_at == _LOOKED_AT:
                return DeadLetterPage(data=tuple(found), next_cursor=f"{index}:{letter.entry}", has_more=True)
    return DeadLetterPage(data=tuple(found))


@router.post("/dead-letters/{job_id}/requeue", status_code=202, dependencies=[Room])
async def requeue_dead_letter(job_id: str, jobs: JobsDep, principal: PrincipalDep) -> Requeued:
    """Queue a failed memory write again with a new set of attempts; its stored items stay."""
    # Only a memory write of a tenant that the caller manages is found
    missing = f"Dead letter {job_id!r} not found."
    tenant = await tenant_of(job_id, jobs.writes) if is_write(job_id) else None
    if tenant is None:
        raise NotFound(missing, param="job_id")
    if tenant != principal.tenant and not principal.is_operator:
        raise OtherTenants(missing, param="job_id")
    if not await requeue(jobs.writes, job_id):
        raise Conflict("Only a failed memory write can be put back, while its turns are kept.", code="write_not_failed")
    return Requeued(job_id=job_id)
