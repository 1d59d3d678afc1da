"""mem0's memory routes: add, search, list, access by id, batches, and the events of adds."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Annotated, Final, TypeAlias, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import JsonValue

from gateway.access import AllowanceDep, AskingDep, PrincipalDep, QueryId, needs, takes
from gateway.idempotency import Attempt
from gateway.mem0 import answers
from gateway.mem0.answers import Answer, url_of
from gateway.mem0.requests import Add, BatchDelete, BatchUpdate, FeedbackOnMemory, GetAll, Search, Update
from gateway.memory import Memory, MemoryDep, check_has_text, search, write_memory
from memloop.wire.memory import Namespace
from memloop_service.http import read_ours

_AT_ONCE: Final = 8
_NEWEST_EVENTS: Final = 200
_T = TypeVar("_T")
Page: TypeAlias = Annotated[int, Query(ge=1, le=1_000_000)]
PageSize: TypeAlias = Annotated[int, Query(ge=1, le=500)]

_READ, _WRITE = needs("memory:read"), needs("memory:write")

router = APIRouter(include_in_schema=False)


@router.post("/v3/memories/add", **takes(Add, _WRITE))
async def add_memories(
    request: Request, memory: MemoryDep, principal: PrincipalDep, allowance: AllowanceDep
) -> Response:
    """Queue a write; with ``infer`` or ``async_mode`` false, wait and return its results."""
    add = (await read_ours(request, Add)).native()
    check_has_text(add)

    async def work(attempt: Attempt) -> Response:
        await allowance.admit()
        event_id = attempt.event_id(Namespace(tenant=principal.tenant, user_id=add.user_id))
        event = await write_memory(add, memory, principal, event_id=event_id)
        if event is None:
            queued = {"message": "Memory processing has been queued.", "status": "PENDING", "event_id": event_id}
            return JSONResponse(queued)
        return JSONResponse(answers.added(event, shown=principal.allows("memory:read")))

    return await memory.idempotency.once(request, principal, work, owners=(add.namespace(principal.tenant),))


@router.post("/v3/memories/search", **takes(Search, _READ))
async def search_memories(asking: AskingDep, memory: MemoryDep) -> Answer:
    """Search the memories of all entities that the filter names, best first; undecided turns are listed apart."""
    asked = await asking.body(Search)
    found = await search(asked.native(asking.tenant), memory.store, memory.pending, memory.metrics)
    results = answers.only(asked.fields, map(answers.hit, found.results))
    pending: list[JsonValue] = [turn.model_dump(mode="json") for turn in found.pending]  # which mem0 has not
    return {"results": results, "pending": pending, "pending_complete": found.pending_complete}


@router.post("/v3/memories", **takes(GetAll, _READ))
async def list_memories(
    request: Request, memory: MemoryDep, principal: PrincipalDep, page: Page = 1, page_size: PageSize = 100
) -> Answer:
    """Return a page of memories, newest first."""
    asked = await read_ours(request, GetAll)
    listing = await memory.store.listing(asked.native(principal.tenant, page=page, page_size=page_size))
    results = answers.only(asked.fields, map(answers.memory, listing.items))
    return answers.page(results, total=listing.total, url=url_of(request), number=page, size=page_size)


@router.get("/v1/memories/{memory_id}", dependencies=[_READ])
async def get_memory(memory_id: str, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Return one memory."""
    return answers.memory(await memory.store.item(memory_id, tenant=principal.tenant))


@router.put("/v1/memories/{memory_id}", **takes(Update, _WRITE))
async def update_memory(memory_id: str, request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Edit a memory, which creates a new version."""
    patch = (await read_ours(request, Update)).native()
    return answers.memory(await memory.store.patch(memory_id, patch, tenant=principal.tenant))


@router.delete("/v1/memories/{memory_id}", dependencies=[_WRITE])
async def delete_memory(
    memory_id: str, memory: MemoryDep, principal: PrincipalDep, delete_linked: bool = False, dry_run: bool = False
) -> Answer:
    """Delete a memory softly; with ``delete_linked``, also the versions that it superseded; with ``dry_run`` count."""
    tenant = principal.tenant
    versions = (await memory.store.history(memory_id, tenant=tenant)).versions if delete_linked else ()
    number = next((version.version for version in versions if version.id == memory_id), 0)
    older = [version.id for version in versions if version.version < number and version.status != "deleted"]
    if dry_run:
        await memory.store.item(memory_id, tenant=tenant)
        return answers.dry_run(1 + len(older))
    await memory.store.delete(memory_id, tenant=tenant)
    for version_id in older:
        await memory.store.delete(version_id, tenant=tenant)
    return {"message": "Memory deleted successfully!"}


@router.get("/v1/memories/{memory_id}/history", dependencies=[_READ])
async def get_history(memory_id: str, memory: MemoryDep, principal: PrincipalDep) -> list[Answer]:
    """List all versions of a memory, each as a change."""
    known = await memory.store.history(memory_id, tenant=principal.tenant)
    return answers.history(memory_id, known.versions)


@router.put("/v1/batch", **takes(BatchUpdate, _WRITE))
async def update_batch(request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Edit several memories. If one does not exist, none is edited."""
    memories = (await read_ours(request, BatchUpdate)).memories
    patches = [(one.memory_id, one.native()) for one in memories]
    await _check_all(memory, principal.tenant, [memory_id for memory_id, _ in patches])
    await _each(patches, lambda one: memory.store.patch(one[0], one[1], tenant=principal.tenant))
    return {"message": f"Successfully updated {len(patches)} memories"}


@router.delete("/v1/batch", **takes(BatchDelete, _WRITE))
async def delete_batch(request: Request, memory: MemoryDep, principal: PrincipalDep, dry_run: bool = False) -> Answer:
    """Delete several memories. If one does not exist, none is deleted. With ``dry_run`` none is."""
    ids = list(dict.fromkeys(one.memory_id for one in (await read_ours(request, BatchDelete)).memories))
    await _check_all(memory, principal.tenant, ids)
    if dry_run:
        return answers.dry_run(len(ids))
    await _each(ids, lambda memory_id: memory.store.delete(memory_id, tenant=principal.tenant))
    return {"message": f"Successfully deleted {len(ids)} memories"}


@router.post("/v1/feedback", **takes(FeedbackOnMemory, _WRITE))
async def give_feedback(request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Give a verdict on a memory."""
    given = await read_ours(request, FeedbackOnMemory)
    judged = await memory.store.feedback(given.memory_id, given.native(), tenant=principal.tenant)
    reason = judged.feedback.reason if judged.feedback else None
    return {"id": judged.id, "feedback": given.feedback, "feedback_reason": reason}


@router.get("/v1/event/{event_id}", dependencies=[_READ])
async def get_event(event_id: str, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Return the event of an add."""
    return answers.event(await memory.queue.events.get(principal.tenant, event_id))


@router.get("/v1/events", dependencies=[_READ])
async def list_events(
    request: Request,
    memory: MemoryDep,
    principal: PrincipalDep,
    user_id: QueryId,
    page: Page = 1,
    page_size: PageSize = 50,
) -> Answer:
    """Return a page of a user's newest adds; the newest 200 are available."""
    namespace = Namespace(tenant=principal.tenant, user_id=user_id)
    newest = await memory.queue.events.newest(namespace, limit=_NEWEST_EVENTS)
    shown = newest[(page - 1) * page_size : page * page_size]
    found: list[JsonValue] = [answers.event(one) for one in shown]
    return answers.page(found, total=len(newest), url=url_of(request), number=page, size=page_size)


async def _check_all(memory: Memory, tenant: str, ids: Sequence[str]) -> None:
    await _each(ids, lambda memory_id: memory.store.item(memory_id, tenant=tenant))


async def _each(values: Sequence[_T], work: Callable[[_T], Awaitable[object]]) -> None:
    """Run the work over a few values at a time; stop at the first failure."""
    left = iter(values)
    while group := list(islice(left, _AT_ONCE)):
        await asyncio.gather(*map(work, group))
