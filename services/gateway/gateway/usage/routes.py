"""``/v1/admin/usage``: a tenant's tokens and their cost, by model and hour or day, and the ledger that adds them up.

A day of a tenant is one hash, kept for ``KEEP_DAYS``. A field is an hour, a kind of count and a model's label, so a day
has at most 72 fields per model. Labels are the operator's names of models, never a client's. Counts are sent every
``EVERY_S`` seconds.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, date, datetime
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import APIRouter, Query

from gateway.access import ManagedTenant, needs
from gateway.metrics import Metrics
from memloop.wire.base import Wire
from memloop.wire.errors import Unprocessable
from memloop.wire.lists import Listed
from memloop_service import ERRORS, of_app
from memloop_state.link import State
from memloop_state.steps import Counts

KEEP_DAYS: Final = 35
EVERY_S: Final = 1.0
WAIT_S: Final = 2.0
"""The state's time to take counts: a process that stops waits for it."""
DAY_S: Final = 24 * 3600
HOUR_S: Final = 3600


Prices: TypeAlias = Mapping[str, tuple[float, float]]
Sums: TypeAlias = defaultdict[tuple[int, str], Counter[str]]
"""Calls and tokens of each model, in the hours or days that begin at a time (epoch seconds)."""


class Ledger:
    """The usage of all tenants; ``prices`` are those of a million input and output tokens, by model."""

    def __init__(
        self,
        state: State,
        metrics: Metrics,
        *,
        prices: Prices | None = None,
        now: Callable[[], float] = time.time,
        wait_s: float = WAIT_S,
    ) -> None:
        self.prices: Final[Prices] = prices or {}
        self._now = now
        self._counts = Counts(state, "usage", keep_s=(KEEP_DAYS + 1) * DAY_S, wait_s=wait_s)
        self._metrics = metrics

    @asynccontextmanager
    async def keeping(self) -> AsyncGenerator[None]:
        """Store what the process's metrics count until the block exits."""
        stop = asyncio.Event()

        async def repeatedly() -> None:
            while not stop.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), EVERY_S)
                await self.keep()

        keep = asyncio.create_task(repeatedly())
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait({keep})
            await self.keep()

    async def keep(self) -> None:
        """Send what was spent. Counts that the state does not take are lost, and counted as such."""
        if not (spent := self._metrics.take_spent()):
            return
        at = int(self._now())
        counts = {
            (_name(tenant, _day(at)), f"{at // HOUR_S % 24:02}|{kind}|{model}"): count
            for (tenant, kind, model), count in spent.items()
        }
        if not await self._counts.add(counts):
            self._metrics.usage_lost.inc(sum(count for (_, kind, _), count in spent.items() if kind == "calls"))

    async def read(self, tenant: str, after: int, before: int, *, step_s: int) -> Sums:
        """Return the counts of the hours that begin from ``after`` to before ``before``. Raises Unavailable."""
        first = max(after, before - KEEP_DAYS * DAY_S)
        days = [_day(at) for at in range(first - first % DAY_S, before, DAY_S)]
        found = await self._counts.read([_name(tenant, day) for day in days])
        sums: Sums = defaultdict(Counter)
        for day, counts in zip(days, found, strict=True):
            begins = int(datetime.combine(day, datetime.min.time(), UTC).timestamp())
            for field, count in counts.items():
                hour, kind, model = field.split("|", 2)
                if after <= (at := begins + int(hour) * HOUR_S) < before:
                    sums[at // step_s * step_s, model][kind] += count
        return sums


def _name(tenant: str, day: date) -> str:
    return f"{tenant}:{day.isoformat()}"


def _day(at: int) -> date:
    return datetime.fromtimestamp(at, UTC).date()


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


class UsagePage(Listed[UsageEntry]):
    """``GET /v1/admin/usage``, oldest first."""

    tenant: str


LedgerDep: TypeAlias = Annotated[Ledger, of_app("usage")]


@router.get("/usage")
async def list_usage(
    ledger: LedgerDep,
    tenant: ManagedTenant,
    after: Moment = None,
    before: Moment = None,
    by: Literal["hour", "day"] = "hour",
) -> UsagePage:
    """List a tenant's tokens by model: of the steps that begin from ``after`` to before ``before``.

    The default is the last day by the hour, the last 35 days by the day. Older counts are gone.
    """
    step_s = HOUR_S if by == "hour" else DAY_S
    end = int(time.time()) + 1 if before is None else before
    start = max(0, end - (DAY_S if step_s == HOUR_S else _MOST_S[DAY_S])) if after is None else after
    if end - start > _MOST_S[step_s]:
        raise Unprocessable(f"By {by}, ask for at most {_MOST_S[step_s] // DAY_S} days at a time.", param="after")
    sums = await ledger.read(tenant, _step_after(start, step_s), _step_after(end, step_s), step_s=step_s)
    rows: list[UsageEntry] = []
    for (at, model), counts in sorted(sums.items()):
        calls, read, written = counts["calls"], counts["input"], counts["output"]
        price = ledger.prices.get(model)
        cost = None if price is None else (read * price[0] + written * price[1]) / _MILLION
        row = UsageEntry(at=at, model=model, calls=calls, input_tokens=read, output_tokens=written, cost=cost)
        rows.append(row)
    return UsagePage(tenant=tenant, data=tuple(rows))


def _step_after(moment: int, step_s: int) -> int:
    return -(-moment // step_s) * step_s
