"""``/v1/admin/queues`` and ``/v1/admin/dead-letters``: what waits, and what failed. Needs scope ``admin``."""

from typing import Annotated, Literal, TypeAlias, cast

from fastapi import APIRouter, Depends, Query, Request

from gateway.access import PrincipalDep, Room, Tenant, managed, needs
from gateway.jobs.letters import DeadLetterPage, Jobs, QueueDepth, is_write, page_of, tenant_of
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, NotFound, OtherTenants
from memloop_service import ERRORS

Cursor: TypeAlias = Annotated[str | None, Query(pattern="^[0-9]{1,4}:[0-9]{1,15}-[0-9]{1,15}$")]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=100)]

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


class QueuePage(Wire):
    """``GET /v1/admin/queues``."""

    object: str = "list"
    data: tuple[QueueDepth, ...]
    has_more: Literal[False] = False


class Requeued(Wire):
    """``POST /v1/admin/dead-letters/{job_id}/requeue``."""

    job_id: str
    status: str = "queued"


async def jobs_of(request: Request) -> Jobs:
    """Return the slice from the application's state."""
    return cast(Jobs, request.app.state.jobs)


JobsDep: TypeAlias = Annotated[Jobs, Depends(jobs_of)]


@router.get("/queues")
async def list_queues(jobs: JobsDep, principal: PrincipalDep) -> QueuePage:
    """Return the backlog of each queue. It is that of all tenants: with configured keys only operators may see it."""
    principal.require_operator("Only operator keys may list the queues of all tenants.")
    return QueuePage(data=tuple(await jobs.depths()))


@router.get("/dead-letters")
async def list_dead_letters(
    jobs: JobsDep, principal: PrincipalDep, tenant: Tenant = None, cursor: Cursor = None, limit: Limit = 50
) -> DeadLetterPage:
    """List a tenant's jobs that failed on their last attempt."""
    return await page_of(managed(principal, tenant), jobs.writes, cursor=cursor, limit=limit)


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
    if not await jobs.put_back(job_id):
        raise Conflict("Only a failed memory write can be put back, while its turns are kept.", code="write_not_failed")
    return Requeued(job_id=job_id)
