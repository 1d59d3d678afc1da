"""``/v1/admin/traces``: recorded loops of tenants that opted in, for training. Needs scope ``admin``."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from gateway.access import Principal, PrincipalDep, Room, Tenant, access_of, managed, needs
from gateway.traces.keeper import TraceKeeper, TracesDep
from memloop.wire.audit import AuditAction, AuditEntry
from memloop.wire.correlation import request_id
from memloop.wire.errors import Conflict, MemloopError
from memloop.wire.traces import TraceSettings, TraceSwitch
from memloop_service import ERRORS
from memloop_service.http import body_of, read_ours

_JSONL = {"application/jsonl": {"schema": {"type": "string"}}}

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


@router.get("/trace-settings")
async def read_trace_settings(traces: TracesDep, principal: PrincipalDep, tenant: Tenant = None) -> TraceSettings:
    """Return whether a tenant's traces are kept, and how many are stored."""
    return await traces.records.settings(managed(principal, tenant))


@router.put("/trace-settings", dependencies=[Room], openapi_extra=body_of(TraceSwitch))
async def switch_traces(request: Request, traces: TracesDep, principal: PrincipalDep) -> TraceSettings:
    """Start keeping a tenant's traces, or stop and delete the stored ones."""
    asked = await read_ours(request, TraceSwitch)
    tenant, records = managed(principal, asked.tenant), traces.records
    await _audit("traces.enabled" if asked.enabled else "traces.disabled", tenant, principal, request)
    if asked.enabled:
        await records.enable(tenant)
    else:
        await records.disable(tenant)
    return await records.settings(tenant)


@router.get(
    "/traces",
    response_class=StreamingResponse,
    responses={200: {"description": "One trace per line, then a line with their number", "content": _JSONL}},
)
async def export_traces(
    request: Request, traces: TracesDep, principal: PrincipalDep, tenant: Tenant = None
) -> StreamingResponse:
    """Export a tenant's traces as JSONL, oldest first. 409 if the tenant keeps no traces."""
    whose = managed(principal, tenant)
    if not await traces.records.enabled(whose):
        raise Conflict("Traces are not enabled for this tenant.", param="tenant", code="traces_off")
    await _audit("traces.exported", whose, principal, request)
    return StreamingResponse(_lines(traces, whose), media_type="application/jsonl")


async def _lines(traces: TraceKeeper, tenant: str) -> AsyncGenerator[bytes]:
    """Yield the traces and a last line with their number; an error line instead means that some are missing."""
    count = 0
    try:
        async with aclosing(traces.records.all(tenant)) as kept:
            async for trace in kept:
                yield trace.encode() + b"\n"
                count += 1
    except MemloopError as error:
        yield orjson.dumps({"error": {"message": error.message, "type": "api_error"}}) + b"\n"
        return
    yield b'{"exported":%d}\n' % count


async def _audit(action: AuditAction, tenant: str, principal: Principal, request: Request) -> None:
    """Store the audit entry before the action: an action that cannot be audited is not performed."""
    entry = AuditEntry(
        at=datetime.now(UTC),
        kind="admin",
        action=action,
        tenant=tenant,
        actor_tenant=principal.tenant,
        actor_key=principal.key,
        address=request.client.host if request.client else "",
        request_id=request_id.get(),
    )
    auditor = access_of(request).auditor
    await auditor.log.append([entry])
    auditor.acted(entry)
