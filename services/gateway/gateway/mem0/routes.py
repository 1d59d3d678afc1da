"""The routes of mem0's platform API, for mem0's own client. Each maps onto a native operation.

The specification is the client of ``mem0ai`` 2.2: its requests, the fields it reads, the errors it distinguishes.
"""

import ast
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, Literal, Never, TypeAlias, TypeVar, cast

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import JsonValue

from gateway.access import AllowanceDep, AskingDep, PrincipalDep, QueryId, Room, needs, principal_of, takes
from gateway.idempotency import Attempt
from gateway.mem0 import answers
from gateway.mem0.answers import Answer, url_of
from gateway.mem0.requests import (
    Add,
    BatchDelete,
    BatchUpdate,
    FeedbackOnMemory,
    GetAll,
    Search,
    Update,
    entity_ids,
    refuse_app,
)
from gateway.memory import Memory, MemoryDep, check_has_text, erase, search, would_erase, write_memory
from memloop.wire.errors import Conflict, NotSupported, Unprocessable
from memloop.wire.fields import Name
from memloop.wire.memory import ItemPatch, Namespace, Scope
from memloop_service.http import read_ours

_ANY: Final = "*"
_FILTER_CHARS: Final = 4_096
_ORGANISATION: Final = "memloop"
"""The organisation of every key; a key's tenant is its project."""
EntityKind: TypeAlias = Literal["user", "agent", "run", "app"]
_AT_ONCE: Final = 8
_NEWEST_EVENTS: Final = 200
_T = TypeVar("_T")
Page: TypeAlias = Annotated[int, Query(ge=1, le=1_000_000)]
PageSize: TypeAlias = Annotated[int, Query(ge=1, le=500)]

_READ, _WRITE = needs("memory:read"), needs("memory:write")


async def of_older_clients(
    request: Request,
    org_id: str | None = None,
    project_id: str | None = None,
    version: str | None = None,
    api_version: str | None = None,
    output_format: str | None = None,
) -> None:
    """Accept what older clients send with every request, without an effect.

    Raises NotSupported for an organisation or a project other than the key's.
    """
    del version, api_version, output_format
    own = {"org_id": (org_id, _ORGANISATION), "project_id": (project_id, (await principal_of(request)).tenant)}
    for name, (given, keys) in own.items():
        if given not in (None, keys):
            raise NotSupported(f"{name} is not supported: a key's tenant is its project.", param=name)


served = APIRouter(dependencies=[Depends(of_older_clients)])


@served.get("/v1/ping", dependencies=[needs(None)])
async def ping(principal: PrincipalDep) -> Answer:
    """Confirm that the API key is valid; mem0's client calls this when it is created."""
    return {"status": "ok", "org_id": _ORGANISATION, "project_id": principal.tenant, "user_email": None}


@served.get("/v1/entities", dependencies=[needs("memory:read")])
async def list_entities(request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """List every user, agent and run that has memories."""
    known = (await memory.store.entities(Scope(tenant=principal.tenant))).entities
    found: list[JsonValue] = [
        {"id": one.id, "name": one.id, "type": one.type, "total_memories": one.memories} for one in known
    ]
    return answers.page(found, total=len(known), url=url_of(request), number=1, size=len(known))


@served.delete("/v2/entities/{kind}/{name:path}", dependencies=[needs("memory:write"), Room])
async def delete_entity(
    kind: EntityKind, name: Annotated[Name, Path()], memory: MemoryDep, principal: PrincipalDep, dry_run: bool = False
) -> Answer:
    """Delete all data of a user, an agent or a run; with ``dry_run`` count it."""
    refuse_app(name if kind == "app" else None)
    return await _erase("Entity", Scope(tenant=principal.tenant, **{f"{kind}_id": name}), memory, dry_run=dry_run)


@served.delete("/v1/memories", dependencies=[needs("memory:write"), Room])
async def delete_memories(
    memory: MemoryDep,
    principal: PrincipalDep,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    app_id: str | None = None,
    filters: Annotated[str | None, Query(max_length=_FILTER_CHARS)] = None,
    dry_run: bool = False,
) -> Answer:
    """Delete all data of the named user, agent and run; ``user_id=*`` means every user; with ``dry_run`` count it."""
    refuse_app(app_id)
    query = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    given = {name: value for name, value in query.items() if value is not None}
    try:  # the client writes a Python literal; JSON with string values parses the same
        also: object = {} if filters is None else ast.literal_eval(filters)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        also = None
    if not isinstance(also, dict):
        raise Unprocessable("filters must be an object of entity ids.", param="filters")
    ids = entity_ids(given, cast(dict[str, JsonValue], also))
    if not ids:  # nothing is deleted by default
        raise Unprocessable("Give a user_id, an agent_id or a run_id. user_id '*' means every user.", param="user_id")
    if any(ids.get(name) == _ANY for name in ("agent_id", "run_id")):
        raise NotSupported("Only user_id may be '*'.", param="agent_id")
    if ids.get("user_id") == _ANY:
        del ids["user_id"]
    return await _erase("Memories", Scope(tenant=principal.tenant, **ids), memory, dry_run=dry_run)


async def _erase(what: str, scope: Scope, memory: Memory, *, dry_run: bool) -> Answer:
    """Erase one namespace after another, each in its own write lane; with ``dry_run`` count what that would delete."""
    namespaces = await _namespaces_of(scope, memory)
    if dry_run:
        counts = [await would_erase(namespace, memory) for namespace in namespaces]
        return answers.dry_run(sum(one.vectors for one in counts), users=len(counts))
    for namespace in namespaces:
        await erase(namespace, memory)
    return {"message": f"{what} deleted successfully!"}


async def _namespaces_of(scope: Scope, memory: Memory) -> list[Namespace]:
    """Return those of the scope's user, or of all users with waiting, buffered, stored or derived data in the scope.

    A write goes on from the queue to the store, so it is seen in the one or in the other.
    """
    ids = scope.model_dump(include={"agent_id", "run_id"})
    if scope.user_id is not None:
        return [Namespace(tenant=scope.tenant, user_id=scope.user_id, **ids)]
    waiting = await memory.queue.events.waiting_users(scope)
    owners = await memory.owners.users(scope)
    stored = [one.id for one in (await memory.store.entities(scope)).entities if one.type == "user"]
    buffered = [
        buffer.namespace.user_id
        for buffer in (await memory.store.buffers(scope.tenant)).buffers
        if scope.agent_id in (None, buffer.namespace.agent_id) and scope.run_id in (None, buffer.namespace.run_id)
    ]
    users = dict.fromkeys([*waiting, *buffered, *stored, *owners])
    return [Namespace(tenant=scope.tenant, user_id=user_id, **ids) for user_id in users]


@served.post("/v3/memories/add", **takes(Add, _WRITE))
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


@served.post("/v3/memories/search", **takes(Search, _READ))
async def search_memories(asking: AskingDep, memory: MemoryDep) -> Answer:
    """Search the memories of all entities that the filter names, best first; undecided turns are listed apart."""
    asked = await asking.body(Search)
    found = await search(asked.native(asking.tenant), memory.store, memory.pending, memory.metrics)
    hits = (answers.memory(hit.item) | {"score": hit.score} for hit in found.results)
    results = answers.only(asked.fields, hits)
    pending: list[JsonValue] = [turn.model_dump(mode="json") for turn in found.pending]  # which mem0 has not
    return {"results": results, "pending": pending, "pending_complete": found.pending_complete}


@served.post("/v3/memories", **takes(GetAll, _READ))
async def list_memories(
    request: Request, memory: MemoryDep, principal: PrincipalDep, page: Page = 1, page_size: PageSize = 100
) -> Answer:
    """Return a page of memories, newest first."""
    asked = await read_ours(request, GetAll)
    listing = await memory.store.listing(asked.native(principal.tenant, page=page, page_size=page_size))
    results = answers.only(asked.fields, map(answers.memory, listing.items))
    return answers.page(results, total=listing.total, url=url_of(request), number=page, size=page_size)


@served.get("/v1/memories/{memory_id}", dependencies=[_READ])
async def get_memory(memory_id: str, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Return one memory."""
    return answers.memory(await memory.store.item(memory_id, tenant=principal.tenant))


@served.put("/v1/memories/{memory_id}", **takes(Update, _WRITE))
async def update_memory(memory_id: str, request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Edit a memory, which creates a new version."""
    patch = (await read_ours(request, Update)).native()
    edited = await memory.store.patch(memory_id, patch, tenant=principal.tenant)
    return answers.memory(edited) if principal.allows("memory:read") else {"id": edited.id}


@served.delete("/v1/memories/{memory_id}", dependencies=[_WRITE])
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


@served.get("/v1/memories/{memory_id}/history", dependencies=[_READ])
async def get_history(memory_id: str, memory: MemoryDep, principal: PrincipalDep) -> list[Answer]:
    """List all versions of a memory, each as a change."""
    known = await memory.store.history(memory_id, tenant=principal.tenant)
    return answers.history(memory_id, known.versions)


@served.put("/v1/batch", **takes(BatchUpdate, _WRITE))
async def update_batch(request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Edit several memories. If one does not exist or was superseded, none is edited."""
    memories = (await read_ours(request, BatchUpdate)).memories
    patches = [(one.memory_id, one.native()) for one in memories]

    async def look_at(patch: tuple[str, ItemPatch]) -> None:
        if (await memory.store.item(patch[0], tenant=principal.tenant)).status != "activated":
            raise Conflict(f"{patch[0]} was superseded; only the live version can be edited.", code="superseded")

    await _each(patches, look_at)
    await _each(patches, lambda one: memory.store.patch(one[0], one[1], tenant=principal.tenant))
    return {"message": f"Successfully updated {len(patches)} memories"}


@served.delete("/v1/batch", **takes(BatchDelete, _WRITE))
async def delete_batch(request: Request, memory: MemoryDep, principal: PrincipalDep, dry_run: bool = False) -> Answer:
    """Delete several memories. If one does not exist, none is deleted. With ``dry_run`` none is."""
    ids = list(dict.fromkeys(one.memory_id for one in (await read_ours(request, BatchDelete)).memories))
    await _each(ids, lambda memory_id: memory.store.item(memory_id, tenant=principal.tenant))
    if dry_run:
        return answers.dry_run(len(ids))
    await _each(ids, lambda memory_id: memory.store.delete(memory_id, tenant=principal.tenant))
    return {"message": f"Successfully deleted {len(ids)} memories"}


@served.post("/v1/feedback", **takes(FeedbackOnMemory, _WRITE))
async def give_feedback(request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Give a verdict on a memory."""
    given = await read_ours(request, FeedbackOnMemory)
    judged = await memory.store.feedback(given.memory_id, given.native(), tenant=principal.tenant)
    reason = judged.feedback.reason if judged.feedback else None
    return {"id": judged.id, "feedback": given.feedback, "feedback_reason": reason}


@served.get("/v1/event/{event_id}", dependencies=[_READ])
async def get_event(event_id: str, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """Return the event of an add."""
    return answers.event(await memory.queue.events.get(principal.tenant, event_id))


@served.get("/v1/events", dependencies=[_READ])
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


async def _each(values: Sequence[_T], work: Callable[[_T], Awaitable[object]]) -> None:
    """Run the work over a few values at a time; stop at the first failure."""
    for start in range(0, len(values), _AT_ONCE):
        await asyncio.gather(*map(work, values[start : start + _AT_ONCE]))


_NOT_SERVED: Final = (
    ("/v1/exports", ("POST",), "Exports in a schema: get_all gives the memories page by page"),
    ("/v1/exports/get", ("POST",), "Exports in a schema: get_all gives the memories page by page"),
    ("/v1/summary", ("POST",), "Summaries of exports"),
    ("/v2/entities/{kind}/{name}/profile", ("GET",), "Profiles"),
    ("/v2/profiles/{path:path}", ("GET", "POST"), "Profiles"),
    ("/api/v1/orgs/{path:path}", ("GET", "POST", "PUT", "PATCH", "DELETE"), "Projects: a key's tenant is its project"),
    ("/api/v1/webhooks/{path:path}", ("GET", "POST", "PUT", "DELETE"), "Webhooks of projects"),
)
"""The mem0 client's other routes: each is answered with the error for unsupported features."""


def _refusing(what: str) -> Callable[[], Awaitable[None]]:
    async def refuse() -> Never:
        raise NotSupported(f"Not supported. {what}.")

    return refuse


router = APIRouter(include_in_schema=False)
router.include_router(served)
for path, methods, what in _NOT_SERVED:
    refused = [needs(None, ignores_unknown=True)]
    router.add_api_route(path, _refusing(what), methods=[*methods], response_model=None, dependencies=refused)

PATHS = {"/".join(route.path.split("/")[:3]) for route in router.routes if isinstance(route, APIRoute)}
"""The first two segments of each path."""
