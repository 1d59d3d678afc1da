"""``/v1/memory/{id}/feedback`` and ``/v1/memory/audit``: verdicts on memories, and what in them is suspect."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from gateway.access import AllowanceDep, NamespaceDep, PrincipalDep, Room, needs
from gateway.memory.memory import MemoryDep
from memloop.wire.feedback import FeedbackRequest
from memloop.wire.memory import MemoryItem
from memloop.wire.quality import MAX_EXAMPLES, QualityAudit, StoreAudit
from memloop_service.http import body_of, read_ours

router = APIRouter()


@router.get("/audit", dependencies=[needs("memory:read"), Room])
async def audit_memory(
    memory: MemoryDep,
    namespace: NamespaceDep,
    allowance: AllowanceDep,
    stale_after_days: Annotated[int | None, Query(ge=1, le=36_500)] = None,
    examples: Annotated[int, Query(ge=0, le=MAX_EXAMPLES)] = 10,
) -> QualityAudit:
    """Audit a namespace's memories: duplicates, contradictions, stale facts and junk, found by rules over the texts."""
    await allowance.admit()
    return await memory.store.audit(
        StoreAudit(namespace=namespace, stale_after_days=stale_after_days, examples=examples)
    )


@router.post("/{item_id}/feedback", dependencies=[needs("memory:write"), Room], openapi_extra=body_of(FeedbackRequest))
async def give_feedback(item_id: str, request: Request, memory: MemoryDep, principal: PrincipalDep) -> MemoryItem:
    """Give a verdict on a memory: ``helpful``, ``wrong``, ``outdated``, or null to withdraw it.

    Searches raise a helpful memory a little, lower an outdated one, and leave a wrong one out.
    """
    feedback = await read_ours(request, FeedbackRequest)
    return await memory.store.feedback(item_id, feedback, tenant=principal.tenant)
