"""``/v1/admin/memory-policy`` sets what may be kept, ``/v1/memory/policy`` what an application adds for a user.

``/v1/memory/policy/check`` and ``/v1/memory/redaction/check`` show what a write would keep. Nothing is stored.
"""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Annotated, TypeAlias, TypeVar

from fastapi import APIRouter, Depends, Request

from gateway.access import (
    Asking,
    AskingDep,
    OptionalId,
    Principal,
    PrincipalDep,
    QueryId,
    Room,
    Tenant,
    audit_action,
    managed,
    needs,
    takes,
)
from gateway.policy.merging import category_of, end_of
from gateway.policy.policies import Keeper, level_of_app, levels_of, policy_at, policy_of_app
from gateway.policy.redaction.finding import Redaction
from memloop.wire.errors import TooLarge, Unprocessable
from memloop.wire.keys import AuditAction
from memloop.wire.memory import Scope
from memloop.wire.policy import (
    MAX_CHECKED_CHARS,
    CheckedText,
    EffectivePolicy,
    FoundValue,
    KeepPolicy,
    MemoryPolicy,
    PolicyCheck,
    PolicyChecked,
    PolicyState,
    RedactedText,
    RedactionCheck,
    RedactionChecked,
    Span,
    UserPolicyState,
    kinds_of,
)
from memloop_service import ERRORS, of_app
from memloop_service.http import read_ours

router = APIRouter(responses=ERRORS)
_ADMIN, _WRITE = needs("admin"), needs("memory:write")


KeeperDep: TypeAlias = Annotated[Keeper, of_app("keeper")]


async def _level(
    principal: PrincipalDep, tenant: Tenant = None, agent_id: OptionalId = None, user_id: OptionalId = None
) -> Scope:
    """Return the level that the query names. Raises Unprocessable for an agent's user: a user's policy is for all."""
    if agent_id is not None and user_id is not None:
        raise Unprocessable("Name an agent_id or a user_id, not both.", param="agent_id")
    return Scope(tenant=managed(principal, tenant), agent_id=agent_id, user_id=user_id)


LevelDep: TypeAlias = Annotated[Scope, Depends(_level)]


@router.get("/v1/admin/memory-policy", tags=["admin"], dependencies=[_ADMIN])
async def read_policy(keeper: KeeperDep, level: LevelDep) -> PolicyState:
    """Return the policy of a tenant, or of one of its agents or users, and the settings in force there."""
    return await _state(keeper, level)


@router.put("/v1/admin/memory-policy", tags=["admin"], **takes(MemoryPolicy, _ADMIN))
async def put_policy(request: Request, keeper: KeeperDep, principal: PrincipalDep, level: LevelDep) -> PolicyState:
    """Replace the policy of a tenant, or of one of its agents or users; it applies to every write from then on."""
    policy = await read_ours(request, MemoryPolicy)
    await _audit("memory_policy.changed", level, principal, request)
    await keeper.policies.put(level.tenant, levels_of(level)[-1], policy)
    return await _state(keeper, level)


@router.delete("/v1/admin/memory-policy", tags=["admin"], dependencies=[_ADMIN, Room])
async def delete_policy(request: Request, keeper: KeeperDep, principal: PrincipalDep, level: LevelDep) -> PolicyState:
    """Delete the policy of a tenant, or of one of its agents or users; it inherits all settings again."""
    await _audit("memory_policy.deleted", level, principal, request)
    await keeper.policies.delete(level.tenant, levels_of(level)[-1])
    return await _state(keeper, level)


@router.get("/v1/memory/policy", tags=["memory"], dependencies=[needs("memory:read")])
async def read_user_policy(keeper: KeeperDep, principal: PrincipalDep, user_id: QueryId) -> UserPolicyState:
    """Return what was set for a user over this route, and the settings in force for the user."""
    return await _user_state(keeper, principal, user_id)


@router.put("/v1/memory/policy", tags=["memory"], **takes(KeepPolicy, _WRITE))
async def put_user_policy(asking: AskingDep, keeper: KeeperDep, user_id: QueryId) -> UserPolicyState:
    """Replace what the application asks for a user; it adds to the operator's policies and takes nothing away."""
    await keeper.policies.put(asking.tenant, level_of_app(user_id), await asking.body(KeepPolicy))
    return await _user_state(keeper, asking.principal, user_id)


@router.delete("/v1/memory/policy", tags=["memory"], dependencies=[_WRITE, Room])
async def delete_user_policy(keeper: KeeperDep, principal: PrincipalDep, user_id: QueryId) -> UserPolicyState:
    """Delete what the application asks for a user; the operator's policies stay."""
    await keeper.policies.delete(principal.tenant, level_of_app(user_id))
    return await _user_state(keeper, principal, user_id)


async def _user_state(keeper: Keeper, principal: Principal, user_id: str) -> UserPolicyState:
    scope = Scope(tenant=principal.tenant, user_id=user_id)
    found = await keeper.redactions(principal.tenant, [scope])
    return UserPolicyState(user_id=user_id, policy=policy_of_app(scope, found.known), effective=found.policy(scope))


async def _state(keeper: Keeper, level: Scope) -> PolicyState:
    found = await keeper.redactions(level.tenant, [level])
    own = policy_at(levels_of(level)[-1], found.known)
    named = level.model_dump(include={"tenant", "agent_id", "user_id"})
    return PolicyState(**named, policy=own, effective=found.policy(level))


async def _audit(action: AuditAction, level: Scope, principal: Principal, request: Request) -> None:
    target = "agent" if level.agent_id else "user" if level.user_id else "tenant"
    await audit_action(action, request, principal, tenant=level.tenant, target=target)


checks = APIRouter(tags=["memory"], responses=ERRORS)


_Check = TypeVar("_Check", PolicyCheck, RedactionCheck)


async def _asked(asking: Asking, kind: type[_Check], keeper: Keeper) -> tuple[_Check, Redaction, EffectivePolicy]:
    """Read a check; return it with the redaction and the policy of its user. Raises TooLarge and RateLimited."""
    asked = await asking.body(kind)
    if sum(map(len, asked.texts)) > MAX_CHECKED_CHARS:
        raise TooLarge(f"The texts of one check have at most {MAX_CHECKED_CHARS} characters.", param="texts")
    namespace = asked.namespace(asking.tenant)
    redactions = await keeper.redactions(asking.tenant, [namespace])
    return asked, redactions.of(namespace), redactions.policy(namespace)


@checks.post("/v1/memory/policy/check", **takes(PolicyCheck, _WRITE))
async def check_policy(asking: AskingDep, keeper: KeeperDep) -> PolicyChecked:
    """Return texts as a write of this user would keep them: as they are, redacted, or not at all."""
    asked, redaction, policy = await _asked(asking, PolicyCheck, keeper)
    texts = await asyncio.to_thread(lambda: tuple(_kept(text, redaction) for text in asked.texts))
    now = datetime.now(UTC)
    return PolicyChecked(
        texts=texts,
        category=category_of(policy, asked.tags),
        expires_at=end_of(policy, kind=asked.memory_type, tags=asked.tags, made_at=now),
        effective=policy,
    )


@checks.post("/v1/memory/redaction/check", **takes(RedactionCheck, _WRITE))
async def check_redaction(asking: AskingDep, keeper: KeeperDep) -> RedactionChecked:
    """Return texts as a write of this user would store them, and what they would lose. Nothing is stored."""
    asked, redaction, _ = await _asked(asking, RedactionCheck, keeper)
    redaction.refusals = None
    if asked.kinds is not None:
        redaction.kinds = kinds_of(asked.kinds)

    def checked(text: str) -> RedactedText:
        found = redaction.detector(text, redaction.kinds)
        places = tuple(FoundValue(kind=each.kind, start=each.start, end=each.end) for each in found)
        return RedactedText(text=redaction(text), found=places)

    texts = await asyncio.to_thread(lambda: tuple(map(checked, asked.texts)))
    counts = Counter(found.kind for text in texts for found in text.found)
    return RedactionChecked(texts=texts, counts=dict(counts), kinds=tuple(sorted(redaction.kinds)))


def _kept(text: str, redaction: Redaction) -> CheckedText:
    refused = redaction.refusals.sentences(text) if redaction.refusals is not None else []
    rest = redaction.refusals.without(text)[0] if redaction.refusals is not None else text
    kept = redaction(text)
    outcome = "refused" if refused and not kept else "kept" if kept == text else "redacted"
    found = redaction.detector(rest, redaction.kinds) if redaction.kinds else []
    return CheckedText(
        kept=kept,
        outcome=outcome,
        refused=tuple(Span(start=start, end=end) for start, end in refused),
        found=tuple(FoundValue(kind=each.kind, start=each.start, end=each.end) for each in found),
    )
