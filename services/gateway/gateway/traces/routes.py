"""``/v1/admin/traces``: recorded loops of tenants that opted in, for training. Needs scope ``admin``."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from gateway.access import ManagedTenant, PrincipalDep, Room, audit_action, managed, needs
from gateway.traces.keeper import TraceKeeper, TracesDep
from memloop.wire.errors import Conflict, MemloopError
from memloop.wire.traces import TraceSettings, TraceSwitch
from memloop_service import ERRORS
from memloop_service.http import body_of, read_ours

_JSONL = {"application/jsonl": {"schema": {"type": "string"}}}

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


@router.get("/trace-settings")
async def read_trace_settings(traces: TracesDep, tenant: ManagedTenant) -> TraceSettings:
    """Return whether a tenant's traces are kept, and how many are stored."""
    return await traces.records.settings(tenant)


@router.put("/trace-settings", dependencies=[Room], openapi_extra=body_of(TraceSwitch))
async def switch_traces(request: Request, traces: TracesDep, principal: PrincipalDep) -> TraceSettings:
    """Start keeping a tenant's traces, or stop and delete the stored ones."""
    asked = await read_ours(request, TraceSwitch)
    tenant, records = managed(principal, asked.tenant), traces.records
    await audit_action("traces.enabled" if asked.enabled else "traces.disabled", request, principal, tenant=tenant)
    await records.switch(tenant, on=asked.enabled)
    return await records.settings(tenant)


@router.get(
    "/traces",
    response_class=StreamingResponse,
    responses={200: {"description": "One trace per line, then a line with their number", "content": _JSONL}},
)
async def export_traces(
    request: Request, traces: TracesDep, principal: PrincipalDep, tenant: ManagedTenant
) -> StreamingResponse:
    """Export a tenant's traces as JSONL, oldest first. 409 if the tenant keeps no traces."""
    if not await traces.records.enabled(tenant):
        raise Conflict("Traces are not enabled for this tenant.", param="tenant", code="traces_off")
    await audit_action("traces.exported", request, principal, tenant=tenant)
    return StreamingResponse(_lines(traces, tenant), media_type="application/jsonl")


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
