"""Lists entities (users, agents, runs) and deletes all memories of one."""

import ast
from typing import Annotated, Final, Literal, TypeAlias, cast

from fastapi import APIRouter, Path, Query, Request
from pydantic import JsonValue

from gateway.access import PrincipalDep, Room, needs, principal_of
from gateway.mem0 import answers
from gateway.mem0.answers import Answer, url_of
from gateway.mem0.filters import refuse_app
from gateway.mem0.requests import entity_ids
from gateway.memory import Memory, MemoryDep, erase, would_erase
from memloop.wire.errors import NotSupported, Unprocessable
from memloop.wire.fields import Name
from memloop.wire.memory import Namespace, Scope

_ANY: Final = "*"
_FILTER_CHARS: Final = 4_096
_ORGANISATION: Final = "memloop"
"""The organisation of every key; a key's tenant is its project."""
EntityKind: TypeAlias = Literal["user", "agent", "run", "app"]

router = APIRouter(include_in_schema=False)


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


@router.get("/v1/ping", dependencies=[needs(None)])
async def ping(principal: PrincipalDep) -> Answer:
    """Confirm that the API key is valid; mem0's client calls this when it is created."""
    return {"status": "ok", "org_id": _ORGANISATION, "project_id": principal.tenant, "user_email": None}


@router.get("/v1/entities", dependencies=[needs("memory:read")])
async def list_entities(request: Request, memory: MemoryDep, principal: PrincipalDep) -> Answer:
    """List every user, agent and run that has memories."""
    known = (await memory.store.entities(Scope(tenant=principal.tenant))).entities
    found: list[JsonValue] = [
        {"id": one.id, "name": one.id, "type": one.type, "total_memories": one.memories} for one in known
    ]
    return answers.page(found, total=len(known), url=url_of(request), number=1, size=len(known))


@router.delete("/v2/entities/{kind}/{name:path}", dependencies=[needs("memory:write"), Room])
async def delete_entity(
    kind: EntityKind, name: Annotated[Name, Path()], memory: MemoryDep, principal: PrincipalDep, dry_run: bool = False
) -> Answer:
    """Delete all data of a user, an agent or a run; with ``dry_run`` count it."""
    refuse_app(name if kind == "app" else None)
    scope = Scope(tenant=principal.tenant, **{f"{kind}_id": name})
    if dry_run:
        return await _would_erase(scope, memory)
    await _erase(scope, memory)
    return {"message": "Entity deleted successfully!"}


@router.delete("/v1/memories", dependencies=[needs("memory:write"), Room])
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
    scope = Scope(tenant=principal.tenant, **ids)
    if dry_run:
        return await _would_erase(scope, memory)
    await _erase(scope, memory)
    return {"message": "Memories deleted successfully!"}


async def _erase(scope: Scope, memory: Memory) -> None:
    """Erase one namespace after another, each in its own write lane."""
    for namespace in await _namespaces_of(scope, memory):
        await erase(namespace, memory)


async def _would_erase(scope: Scope, memory: Memory) -> Answer:
    counts = [await would_erase(namespace, memory) for namespace in await _namespaces_of(scope, memory)]
    return answers.dry_run(sum(one.vectors for one in counts), users=len(counts))


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
