"""``/v1/memory``: add, search, list, read, edit, judge, audit, delete and erase memories; events; buffers."""

from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from gateway.access import (
    AllowanceDep,
    AskingDep,
    NamespaceDep,
    OptionalId,
    Principal,
    PrincipalDep,
    Room,
    needs,
    takes,
)
from gateway.idempotency import Attempt, refuse_key
from gateway.memory.jobs import MemoryJob
from gateway.memory.memory import Memory, MemoryDep
from gateway.memory.operations import check_has_text, erase, would_erase, write_batch, write_memory
from gateway.memory.pending import search
from gateway.memory.schemas import (
    Accepted,
    Flushing,
    FlushRequest,
    MemoryDeleted,
    MemoryExport,
    RedecideRequest,
    Redeciding,
)
from gateway.memory.transfer import exported, imported
from memloop.wire.feedback import FeedbackRequest
from memloop.wire.memory import BatchResult, Erased, ItemPatch, MemoryItem, Namespace
from memloop.wire.memory_events import ENDED, MemoryEvent
from memloop.wire.memory_requests import (
    BufferList,
    EventList,
    FoundMemories,
    MemoryAdd,
    MemoryBatch,
    MemoryChanged,
    MemoryList,
    MemorySearch,
    VersionList,
)
from memloop.wire.quality import MAX_EXAMPLES, QualityAudit, StoreAudit
from memloop.wire.store_requests import Imported, StoreExport
from memloop_service import ERRORS
from memloop_service.http import json_response, read_ours
from memloop_service.incoming import IF_MATCH, version_in

_JSONL: Final[dict[str, Any]] = {"application/jsonl": {"schema": {"type": "string"}}}
Limit: TypeAlias = Annotated[int, Query(ge=1, le=200)]


router = APIRouter(prefix="/v1/memory", tags=["memory"], responses=ERRORS)
_READ, _WRITE = needs("memory:read"), needs("memory:write")


@router.post(
    "/add",
    response_model=MemoryEvent | Accepted,
    status_code=202,
    responses={200: {"description": "The write has ended", "model": MemoryEvent | Accepted}},
    **takes(MemoryAdd, _WRITE),
)
async def add_memory(request: Request, memory: MemoryDep, principal: PrincipalDep, allowance: AllowanceDep) -> Response:
    """Add memories: queue a write (202). With ``sync`` or ``infer`` false, wait and return its event (200)."""
    add = await read_ours(request, MemoryAdd)
    check_has_text(add)

    async def work(attempt: Attempt) -> Response:
        await allowance.admit()
        event_id = attempt.event_id(Namespace(tenant=principal.tenant, user_id=add.user_id))
        return await added(add, memory, principal, event_id=event_id)

    return await memory.idempotency.once(request, principal, work, owners=(add.namespace(principal.tenant),))


async def added(add: MemoryAdd, memory: Memory, principal: Principal, *, event_id: str) -> Response:
    """Return the answer to an add once it is queued or, if it waits, done."""
    event = await write_memory(add, memory, principal, event_id=event_id)
    if event is None:
        return json_response(Accepted(event_id=event_id), status=202)
    answer = event if principal.allows("memory:read") else Accepted(event_id=event_id, status=event.status)
    return json_response(answer, status=200 if event.status in ENDED else 202)


def shown(item: MemoryItem, principal: Principal) -> MemoryItem | MemoryChanged:
    """Return what the key may see of a memory that it changed."""
    return item if principal.allows("memory:read") else MemoryChanged.of(item)


@router.post("/batch", **takes(MemoryBatch, _WRITE))
async def add_batch(asking: AskingDep, memory: MemoryDep) -> BatchResult:
    """Store the texts of many adds verbatim in one call. Returns an outcome for each, in order.

    Repeating the request updates the same memories, so ``Idempotency-Key`` is neither needed nor accepted.
    """
    refused = "A batch takes no Idempotency-Key: repeated, it writes nothing twice."
    refuse_key(asking.request, refused, code="idempotency_key_with_batch")
    return await write_batch(await asking.body(MemoryBatch), memory, asking.principal)


@router.post("/search", **takes(MemorySearch, _READ))
async def search_memory(
    request: Request, memory: MemoryDep, principal: PrincipalDep, allowance: AllowanceDep
) -> FoundMemories:
    """Search a user's memories, best match first."""
    asked = await read_ours(request, MemorySearch)
    await allowance.admit()
    return FoundMemories.of(
        await search(asked.in_tenant(principal.tenant), memory.store, memory.pending, memory.metrics)
    )


@router.get("/audit", dependencies=[_READ, Room])
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


@router.post("/{item_id}/feedback", **takes(FeedbackRequest, _WRITE))
async def give_feedback(
    item_id: str, request: Request, memory: MemoryDep, principal: PrincipalDep
) -> MemoryItem | MemoryChanged:
    """Give a verdict on a memory: ``helpful``, ``wrong``, ``outdated``, or null to withdraw it.

    Searches raise a helpful memory a little, lower an outdated one, and leave a wrong one out.
    """
    feedback = await read_ours(request, FeedbackRequest)
    return shown(await memory.store.feedback(item_id, feedback, tenant=principal.tenant), principal)


@router.get("/events", dependencies=[_READ])
async def list_events(memory: MemoryDep, namespace: NamespaceDep, limit: Limit = 50) -> EventList:
    """List a user's newest writes."""
    return EventList.of(await memory.queue.events.newest(namespace, limit=limit + 1), limit=limit)


@router.get("/events/{event_id}", dependencies=[_READ])
async def get_event(event_id: str, memory: MemoryDep, principal: PrincipalDep) -> MemoryEvent:
    """Return one write with its status and every decision."""
    return await memory.queue.events.get(principal.tenant, event_id)


@router.post("/events/{event_id}/retry", status_code=202, dependencies=[_WRITE, Room])
async def retry_event(event_id: str, memory: MemoryDep, principal: PrincipalDep) -> Accepted:
    """Queue a failed write again with a new set of attempts; its stored items stay. 409 for any other write."""
    await memory.queue.retry(principal.tenant, event_id)
    return Accepted(event_id=event_id)


@router.post("/events/{event_id}/redecide", status_code=202, dependencies=[_WRITE, Room])
async def redecide_event(event_id: str, asking: AskingDep, memory: MemoryDep) -> Accepted:
    """Queue a new decision on a write that was kept verbatim. 409 for any other write."""
    await asking.allowance.admit()
    await memory.kept.redecide(memory.queue, event_id, tenant=asking.tenant)
    return Accepted(event_id=event_id)


@router.post("/redecide", status_code=202, **takes(RedecideRequest, _WRITE))
async def redecide_events(asking: AskingDep, memory: MemoryDep) -> Redeciding:
    """Queue new decisions on writes that were kept verbatim: a user's, or without ids all of the tenant's.

    At most 100 at a time. A repeated request finds those that are still to be decided.
    """
    asked = await asking.body(RedecideRequest)
    ids, more = await memory.kept.redecide_some(memory.queue, asked.scope(asking.tenant), most=100)
    return Redeciding(events=tuple(Accepted(event_id=one) for one in ids), has_more=more)


@router.get("/buffers", dependencies=[_READ])
async def list_buffers(memory: MemoryDep, principal: PrincipalDep, user_id: OptionalId = None) -> BufferList:
    """List the turns that wait for more context."""
    return BufferList.of(await memory.store.buffers(principal.tenant, user_id=user_id))


@router.post("/buffers/flush", response_model=Flushing, status_code=202, **takes(FlushRequest, _WRITE))
async def flush_buffers(asking: AskingDep, memory: MemoryDep) -> Response:
    """Queue a decision over every buffer of the namespace in its present state."""
    flush = await read_ours(asking.request, FlushRequest)

    async def queue(attempt: Attempt) -> Response:
        await asking.allowance.admit()
        return json_response(await flushed(flush, memory, asking.principal, attempt), status=202)

    owners = (flush.namespace(asking.tenant),)
    return await memory.idempotency.once(asking.request, asking.principal, queue, owners=owners)


async def flushed(flush: FlushRequest, memory: Memory, principal: Principal, attempt: Attempt) -> Flushing:
    """Queue one write for each existing buffer."""
    page = await memory.store.buffers(principal.tenant, user_id=flush.user_id)
    jobs = [
        MemoryJob(event_id=attempt.event_id(space, part=space.scopes()[-1]), namespace=space)
        for space in (buffer.namespace for buffer in page.buffers)
        if flush.agent_id in (None, space.agent_id) and flush.run_id in (None, space.run_id)
    ]
    for job in jobs:
        await memory.queue.enqueue(job)
    return Flushing(events=tuple(Accepted(event_id=job.event_id) for job in jobs))


@router.post(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"description": "One memory per line, then a line with their number", "content": _JSONL}},
    **takes(MemoryExport, _READ),
)
async def export_memory(asking: AskingDep, memory: MemoryDep) -> StreamingResponse:
    """Export a user's memories as JSONL: every version, without vectors."""
    asked = await asking.body(MemoryExport)
    scope = asked.namespace(asking.tenant)
    export = StoreExport(scope=scope, include_raw=asked.include_raw, latest_only=asked.latest_only)
    first = await memory.store.export(export)
    return StreamingResponse(exported(memory.store, export, first), media_type="application/jsonl")


@router.post(
    "/import", dependencies=[_WRITE, Room], openapi_extra={"requestBody": {"required": True, "content": _JSONL}}
)
async def import_memory(asking: AskingDep, memory: MemoryDep) -> Imported:
    """Import the lines of an export into the caller's tenant; repeating an import has no effect."""
    await asking.allowance.admit()
    began = await memory.queue.lanes.newest_token()
    return await imported(memory.store, asking.tenant, asking.request.stream(), began=began)


@router.get("", dependencies=[_READ])
async def list_memories(
    memory: MemoryDep,
    namespace: NamespaceDep,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
    limit: Limit = 50,
) -> MemoryList:
    """List a page of a namespace's memories."""
    return MemoryList.of(await memory.store.items(namespace, cursor=cursor, limit=limit))


@router.delete("", dependencies=[_WRITE])
async def erase_memories(memory: MemoryDep, namespace: NamespaceDep, dry_run: bool = False) -> Erased:
    """Erase all data of a namespace and all that was derived from it. Returns the counts by kind.

    With ``dry_run`` nothing is erased, and the counts are of what would be.
    """
    return await (would_erase if dry_run else erase)(namespace, memory)


@router.get("/{item_id}", dependencies=[_READ])
async def get_memory(item_id: str, memory: MemoryDep, principal: PrincipalDep) -> MemoryItem:
    """Return one memory."""
    return await memory.store.item(item_id, tenant=principal.tenant)


@router.patch("/{item_id}", **takes(ItemPatch, _WRITE))
async def patch_memory(
    item_id: str,
    request: Request,
    memory: MemoryDep,
    principal: PrincipalDep,
    if_match: Annotated[str, Header(pattern=IF_MATCH)] = "*",
) -> MemoryItem | MemoryChanged:
    """Edit a memory, which creates a new version. ``If-Match`` names the version to edit."""
    patch = await read_ours(request, ItemPatch)
    edited = await memory.store.patch(item_id, patch, tenant=principal.tenant, if_version=version_in(if_match))
    return shown(edited, principal)


@router.delete("/{item_id}", dependencies=[_WRITE])
async def delete_memory(item_id: str, memory: MemoryDep, principal: PrincipalDep) -> MemoryDeleted:
    """Delete a memory softly."""
    await memory.store.delete(item_id, tenant=principal.tenant)
    return MemoryDeleted(id=item_id)


@router.post("/{item_id}/recover", dependencies=[_WRITE])
async def recover_memory(item_id: str, memory: MemoryDep, principal: PrincipalDep) -> MemoryItem | MemoryChanged:
    """Undo a soft deletion while the history lasts. Returns the memory that now holds the fact."""
    return shown(await memory.store.recover(item_id, tenant=principal.tenant), principal)


@router.get("/{item_id}/history", dependencies=[_READ])
async def get_history(item_id: str, memory: MemoryDep, principal: PrincipalDep) -> VersionList:
    """List all versions of a memory, oldest first, each with the decisions that produced it."""
    return VersionList.of(await memory.store.history(item_id, tenant=principal.tenant))
