"""``/v1/memory/changes`` reads and follows the feed; ``/v1/admin/memory-webhooks`` subscribes to it."""

import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import Field

from gateway.access import ManagedTenant, OptionalId, PrincipalDep, audit_action, needs, takes
from gateway.changes.following import LONGEST_S, Bell, event_of, followed
from gateway.changes.hooks import MemoryHooks
from gateway.long_read.reading import Followers, sent
from gateway.webhooks.deliveries import Hook
from gateway.webhooks.webhooks import Webhooks
from memloop.wire.base import Wire
from memloop.wire.changes import CHANGE_TYPES, LATEST, MOST_CHANGES, OLDEST, ChangeType, Cursor, StoreChanges
from memloop.wire.errors import NotFound
from memloop.wire.fields import Name, WebUrl
from memloop.wire.lists import Deleted, Listed
from memloop.wire.memory import Scope
from memloop.wire.memory_requests import ChangeList
from memloop_clients import StoreClient
from memloop_service import ERRORS, of_app
from memloop_service.http import json_response, read_ours, streams


@dataclass(frozen=True, slots=True)
class Changes:
    """The feeds of all tenants. ``followers`` bounds the streams, together with those of reads, ``longest_s`` each."""

    store: StoreClient
    bell: Bell
    followers: Followers
    hooks: MemoryHooks
    webhooks: Webhooks
    heartbeat_s: float
    longest_s: float = LONGEST_S


ChangesDep: TypeAlias = Annotated[Changes, of_app("changes")]


class NewHook(Wire):
    """``POST /v1/admin/memory-webhooks``: the address, the types of changes, and one user or all."""

    url: WebUrl
    events: tuple[ChangeType, ...] = Field(default=CHANGE_TYPES, min_length=1, max_length=16)
    user_id: Name | None = None


class HookPage(Listed[Hook]):
    """A tenant's subscriptions."""


class HookDeleted(Deleted):
    """``DELETE /v1/admin/memory-webhooks/{hook_id}``."""

    object: Literal["memory_webhook"] = "memory_webhook"


router = APIRouter(responses=ERRORS)
_ADMIN = needs("admin")


@router.get(
    "/v1/memory/changes",
    tags=["memory"],
    response_model=ChangeList,
    dependencies=[needs("memory:read")],
    responses=streams(ChangeList),
)
async def list_changes(
    changes: ChangesDep,
    principal: PrincipalDep,
    after: Annotated[Cursor, Query()] = OLDEST,
    limit: Annotated[int, Query(ge=1, le=MOST_CHANGES)] = 100,
    user_id: OptionalId = None,
    agent_id: OptionalId = None,
    run_id: OptionalId = None,
    stream: bool = False,
    last_event_id: Annotated[Cursor | None, Header(include_in_schema=False)] = None,
) -> Response:
    """List what became of memories, oldest first, without their texts; with ``stream`` as events, without an end.

    ``after`` is a cursor, ``0`` for the oldest change that is kept, or ``latest``. ``Last-Event-ID`` replaces it. 410
    ``cursor_too_old`` when changes after the cursor are no longer kept.
    """
    scope = Scope(tenant=principal.tenant, user_id=user_id, agent_id=agent_id, run_id=run_id)
    asked = StoreChanges(scope=scope, after=last_event_id or after, limit=limit)
    if not stream:
        return json_response(ChangeList.of(await changes.store.changes(asked)), status=200)
    with ExitStack() as seat:
        seat.enter_context(changes.followers.seat(principal.tenant))
        first = await changes.store.changes(asked)
        events = followed(changes.store, changes.bell, scope, first, longest_s=changes.longest_s)
        return sent(events, event_of, seat=seat.pop_all(), heartbeat_s=changes.heartbeat_s)


@router.post("/v1/admin/memory-webhooks", tags=["admin"], status_code=201, **takes(NewHook, _ADMIN))
async def create_memory_webhook(
    request: Request, changes: ChangesDep, principal: PrincipalDep, tenant: ManagedTenant
) -> Hook:
    """Subscribe an address to a tenant's changes from now on; each one is a signed message."""
    asked = await read_ours(request, NewHook)
    await changes.webhooks.rules.check_url(asked.url, param="url")
    hook = Hook(
        id=f"hook_{secrets.token_hex(16)}",
        tenant=tenant,
        url=asked.url,
        events=tuple(dict.fromkeys(asked.events)),
        user_id=asked.user_id,
        created_at=datetime.now(UTC),
    )
    newest = await changes.store.changes(StoreChanges(scope=Scope(tenant=tenant), after=LATEST))
    await audit_action("memory_webhook.created", request, principal, tenant=tenant, target=hook.id)
    await changes.hooks.add(hook, place=newest.cursor)
    return hook


@router.get("/v1/admin/memory-webhooks", tags=["admin"], dependencies=[_ADMIN])
async def list_memory_webhooks(changes: ChangesDep, tenant: ManagedTenant) -> HookPage:
    """List a tenant's subscriptions, oldest first."""
    return HookPage(data=tuple(await changes.hooks.of(tenant)))


@router.delete("/v1/admin/memory-webhooks/{hook_id}", tags=["admin"], dependencies=[_ADMIN])
async def delete_memory_webhook(
    hook_id: str, request: Request, changes: ChangesDep, principal: PrincipalDep, tenant: ManagedTenant
) -> HookDeleted:
    """Delete a subscription; its messages that wait are not sent any more."""
    if all(hook.id != hook_id for hook in await changes.hooks.of(tenant)):
        raise NotFound("Webhook not found.", param="hook_id")
    await audit_action("memory_webhook.deleted", request, principal, tenant=tenant, target=hook_id)
    await changes.hooks.delete(tenant, hook_id)
    return HookDeleted(id=hook_id)
