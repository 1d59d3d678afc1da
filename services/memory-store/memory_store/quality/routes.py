"""The route of quality audits."""

from functools import partial

from fastapi import APIRouter

from memloop.wire.quality import QualityAudit, StoreAudit
from memory_store.quality.auditing import Audits
from memory_store.vectors.gate import Gate


def audit_routes(new_router: partial[APIRouter], audits: Audits, gate: Gate) -> APIRouter:
    """``POST /items/audit``, which waits while another collection is put in service."""
    router = new_router(tags=["items"])

    @router.post("/items/audit")
    async def audit(request: StoreAudit) -> QualityAudit:
        async with gate.shared():
            return await audits.audit(request)

    _ = audit
    return router
