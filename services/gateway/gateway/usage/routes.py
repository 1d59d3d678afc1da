"""``/v1/admin/usage``: a tenant's tokens and their cost, by model and hour or day. Needs scope ``admin``."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Query

from gateway.access import PrincipalDep, Tenant, managed, needs
from gateway.usage.ledger import DAY_S, HOUR_S, KEEP_DAYS, Ledger
from memloop.wire.base import Wire
from memloop.wire.errors import Unprocessable
from memloop_service import ERRORS, of_app

_MOST_S = {HOUR_S: 7 * DAY_S, DAY_S: KEEP_DAYS * DAY_S}
"""The longest time that one answer covers, by the length of its steps."""
_MILLION = 1_000_000

Moment: TypeAlias = Annotated[int | None, Query(ge=0, le=10**11)]
"""Seconds since the epoch."""

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


class UsageEntry(Wire):
    """The tokens of a model in the hour or the day (UTC) that begins at ``at``, in seconds since the epoch.

    ``calls`` are the engine's calls that reported their tokens. ``cost`` is null for a model without prices.
    """

    at: int
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None = None


class UsagePage(Wire):
    """``GET /v1/admin/usage``, oldest first."""

    object: str = "list"
    tenant: str
    data: tuple[UsageEntry, ...]
    has_more: Literal[False] = False


@dataclass(frozen=True, slots=True)
class Usage:
    """The slice: what is spent, and the prices of a million input and output tokens by model."""

    ledger: Ledger
    prices: Mapping[str, tuple[float, float]]


UsageDep: TypeAlias = Annotated[Usage, of_app("usage")]


@router.get("/usage")
async def list_usage(
    usage: UsageDep,
    principal: PrincipalDep,
    tenant: Tenant = None,
    after: Moment = None,
    before: Moment = None,
    by: Literal["hour", "day"] = "hour",
) -> UsagePage:
    """List a tenant's tokens by model: of the steps that begin from ``after`` to before ``before``.

    The default is the last day by the hour, the last 35 days by the day. Older counts are gone.
    """
    whose = managed(principal, tenant)
    step_s = HOUR_S if by == "hour" else DAY_S
    end = int(time.time()) + 1 if before is None else before
    start = max(0, end - (DAY_S if step_s == HOUR_S else _MOST_S[DAY_S])) if after is None else after
    if end - start > _MOST_S[step_s]:
        raise Unprocessable(f"By {by}, ask for at most {_MOST_S[step_s] // DAY_S} days at a time.", param="after")
    sums: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for entry in await usage.ledger.read(whose, _step_after(start, step_s), _step_after(end, step_s)):
        sums[entry.at // step_s * step_s, entry.model][entry.kind] += entry.count
    rows: list[UsageEntry] = []
    for (at, model), counts in sorted(sums.items()):
        price, spent = usage.prices.get(model), (counts["input"], counts["output"])
        cost = (spent[0] * price[0] + spent[1] * price[1]) / _MILLION if price else None
        row = UsageEntry(
            at=at, model=model, calls=counts["calls"], input_tokens=spent[0], output_tokens=spent[1], cost=cost
        )
        rows.append(row)
    return UsagePage(tenant=whose, data=tuple(rows))


def _step_after(moment: int, step_s: int) -> int:
    return -(-moment // step_s) * step_s
