"""The route of quality audits."""

from fastapi import APIRouter

from memloop.wire.quality import QualityAudit, StoreAudit
from memory_store.quality.auditing import Audits
from memory_store.vectors.gate import Gate


def audit_routes(audits: Audits, gate: Gate) -> APIRouter:
    """``POST /items/audit``, which waits while another collection is put in service."""
    router = APIRouter(tags=["items"])

    @router.post("/items/audit")
    async def audit(request: StoreAudit) -> QualityAudit:
        async with gate.shared():
            return await audits.audit(request)

    _ = audit
    return router
