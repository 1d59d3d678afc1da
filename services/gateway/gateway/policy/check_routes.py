"""``/v1/memory/policy/check`` and ``/v1/memory/redaction/check`` show what a write would keep. Nothing is stored."""

import asyncio
from collections import Counter
from datetime import UTC, datetime

from fastapi import APIRouter, Request

from gateway.access import AllowanceDep, PrincipalDep, Room, needs
from gateway.policy.merging import category_of, end_of
from gateway.policy.redaction import Redaction
from gateway.policy.routes import KeeperDep
from memloop.wire.errors import TooLarge
from memloop.wire.policy import (
    MAX_CHECKED_CHARS,
    CheckedText,
    FoundValue,
    PolicyCheck,
    PolicyChecked,
    RedactedText,
    RedactionCheck,
    RedactionChecked,
    Span,
    kinds_of,
)
from memloop_service import ERRORS
from memloop_service.http import body_of, read_ours

router = APIRouter(tags=["memory"], responses=ERRORS)


@router.post("/v1/memory/policy/check", dependencies=[needs("memory:write"), Room], openapi_extra=body_of(PolicyCheck))
async def check_policy(
    request: Request, keeper: KeeperDep, principal: PrincipalDep, allowance: AllowanceDep
) -> PolicyChecked:
    """Return texts as a write of this user would keep them: as they are, redacted, or not at all."""
    asked = await read_ours(request, PolicyCheck)
    _check_size(asked.texts)
    await allowance.admit()
    namespace = asked.namespace(principal.tenant)
    redactions = await keeper.redactions(principal.tenant, [namespace])
    redaction, policy = redactions.of(namespace), redactions.policy(namespace)
    texts = await asyncio.to_thread(lambda: tuple(_kept(text, redaction) for text in asked.texts))
    now = datetime.now(UTC)
    return PolicyChecked(
        texts=texts,
        category=category_of(policy, asked.tags),
        expires_at=end_of(policy, kind=asked.memory_type, tags=asked.tags, made_at=now),
        effective=policy,
    )


@router.post(
    "/v1/memory/redaction/check",
    dependencies=[needs("memory:write"), Room],
    openapi_extra=body_of(RedactionCheck),
)
async def check_redaction(
    request: Request, keeper: KeeperDep, principal: PrincipalDep, allowance: AllowanceDep
) -> RedactionChecked:
    """Return texts as a write of this user would store them, and what they would lose. Nothing is stored."""
    asked = await read_ours(request, RedactionCheck)
    _check_size(asked.texts)
    await allowance.admit()
    namespace = asked.namespace(principal.tenant)
    redaction = (await keeper.redactions(principal.tenant, [namespace])).of(namespace)
    redaction.refusals = None
    if asked.kinds is not None:
        redaction.kinds = kinds_of(asked.kinds)
    texts = await asyncio.to_thread(lambda: tuple(_checked(text, redaction) for text in asked.texts))
    counts = Counter(found.kind for text in texts for found in text.found)
    return RedactionChecked(texts=texts, counts=dict(counts), kinds=tuple(sorted(redaction.kinds)))


def _checked(text: str, redaction: Redaction) -> RedactedText:
    found = redaction.detector(text, redaction.kinds)
    places = tuple(FoundValue(kind=each.kind, start=each.start, end=each.end) for each in found)
    return RedactedText(text=redaction(text), found=places)


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


def _check_size(texts: tuple[str, ...]) -> None:
    if sum(map(len, texts)) > MAX_CHECKED_CHARS:
        raise TooLarge(f"The texts of one check have at most {MAX_CHECKED_CHARS} characters.", param="texts")
