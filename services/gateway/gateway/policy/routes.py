"""``/v1/admin/memory-policy`` sets what may be kept; ``/v1/memory/redaction/check`` shows what would be redacted."""

import asyncio
from collections import Counter
from typing import Annotated, TypeAlias, cast

from fastapi import APIRouter, Depends, Query, Request

from gateway.access import AllowanceDep, Principal, PrincipalDep, Room, Tenant, audit_action, managed, needs
from gateway.http import body_of, read_ours
from gateway.policy.keeper import Keeper
from gateway.redaction import Redaction
from memloop.wire.audit import AuditAction
from memloop.wire.errors import TooLarge, Unprocessable
from memloop.wire.memory import Scope
from memloop.wire.policy import MemoryPolicy, PolicyState
from memloop.wire.redaction import (
    MAX_CHECKED_CHARS,
    FoundValue,
    RedactedText,
    RedactionCheck,
    RedactionChecked,
    kinds_of,
)
from memloop_service import ERRORS

_Id: TypeAlias = Annotated[str | None, Query(min_length=1, max_length=256)]

router = APIRouter(responses=ERRORS)
_ADMIN = needs("admin")


async def _keeper_of(request: Request) -> Keeper:
    return cast(Keeper, request.app.state.keeper)


KeeperDep: TypeAlias = Annotated[Keeper, Depends(_keeper_of)]


async def _level(principal: PrincipalDep, tenant: Tenant = None, agent_id: _Id = None, user_id: _Id = None) -> Scope:
    """Return the level that the query names. Raises Unprocessable for an agent's user: a user's policy is for all."""
    if agent_id is not None and user_id is not None:
        raise Unprocessable("Name an agent_id or a user_id, not both.", param="agent_id")
    return Scope(tenant=managed(principal, tenant), agent_id=agent_id, user_id=user_id)


LevelDep: TypeAlias = Annotated[Scope, Depends(_level)]


@router.get("/v1/admin/memory-policy", tags=["admin"], dependencies=[_ADMIN])
async def read_policy(keeper: KeeperDep, level: LevelDep) -> PolicyState:
    """Return the policy of a tenant, or of one of its agents or users, and the settings in force there."""
    return await _state(keeper, level)


@router.put("/v1/admin/memory-policy", tags=["admin"], dependencies=[_ADMIN, Room], openapi_extra=body_of(MemoryPolicy))
async def put_policy(request: Request, keeper: KeeperDep, principal: PrincipalDep, level: LevelDep) -> PolicyState:
    """Replace the policy of a tenant, or of one of its agents or users; it applies to every write from then on."""
    policy = await read_ours(request, MemoryPolicy)
    await _audit("memory_policy.changed", level, principal, request)
    await keeper.policies.put(level, policy)
    return await _state(keeper, level)


@router.delete("/v1/admin/memory-policy", tags=["admin"], dependencies=[_ADMIN, Room])
async def delete_policy(request: Request, keeper: KeeperDep, principal: PrincipalDep, level: LevelDep) -> PolicyState:
    """Delete the policy of a tenant, or of one of its agents or users; it inherits all settings again."""
    await _audit("memory_policy.deleted", level, principal, request)
    await keeper.policies.delete(level)
    return await _state(keeper, level)


@router.post(
    "/v1/memory/redaction/check",
    tags=["memory"],
    dependencies=[needs("memory:write"), Room],
    openapi_extra=body_of(RedactionCheck),
)
async def check_redaction(
    request: Request, keeper: KeeperDep, principal: PrincipalDep, allowance: AllowanceDep
) -> RedactionChecked:
    """Return texts as a write of this user would store them, and what they would lose. Nothing is stored."""
    asked = await read_ours(request, RedactionCheck)
    if sum(map(len, asked.texts)) > MAX_CHECKED_CHARS:
        raise TooLarge(f"The texts of one check have at most {MAX_CHECKED_CHARS} characters.", param="texts")
    await allowance.admit()
    namespace = asked.namespace(principal.tenant)
    redaction = (await keeper.redactions(principal.tenant, [namespace])).of(namespace)
    if asked.kinds is not None:
        redaction.kinds = kinds_of(asked.kinds)
    texts = await asyncio.to_thread(lambda: tuple(_checked(text, redaction) for text in asked.texts))
    counts = Counter(found.kind for text in texts for found in text.found)
    return RedactionChecked(texts=texts, counts=dict(counts), kinds=tuple(sorted(redaction.kinds)))


def _checked(text: str, redaction: Redaction) -> RedactedText:
    found = redaction.detector(text, redaction.kinds)
    places = tuple(FoundValue(kind=each.kind, start=each.start, end=each.end) for each in found)
    return RedactedText(text=redaction(text), found=places)


async def _state(keeper: Keeper, level: Scope) -> PolicyState:
    loaded = await keeper.policies.load(level.tenant, [level])
    return PolicyState(**level.model_dump(include={"tenant", "agent_id", "user_id"}), policy=loaded.own(level),
                       effective=loaded.of(level))  # fmt: skip


async def _audit(action: AuditAction, level: Scope, principal: Principal, request: Request) -> None:
    target = "agent" if level.agent_id else "user" if level.user_id else "tenant"
    await audit_action(action, request, principal, tenant=level.tenant, target=target)
