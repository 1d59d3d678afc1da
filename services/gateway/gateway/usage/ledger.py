"""Adds up each tenant's tokens by model and hour.

A day of a tenant is one hash, kept for ``KEEP_DAYS``. A field is an hour, a kind of count and a model's label, so a day
has at most 72 fields per model. Labels are the operator's names of models, never a client's. Counts are sent every
``EVERY_S`` seconds.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final, Literal, TypeAlias, cast

from gateway.metrics import Metrics, TokenKind
from memloop.wire.base import spender
from memloop_state.link import State
from memloop_state.values import Counts

KEEP_DAYS: Final = 35
EVERY_S: Final = 1.0
WAIT_S: Final = 2.0
"""The state's time to take counts: a process that stops waits for it."""
DAY_S: Final = 24 * 3600
HOUR_S: Final = 3600
Kind: TypeAlias = Literal["calls", "input", "output"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One count of a tenant: of a model's calls or tokens in the hour that begins at ``at`` (epoch seconds)."""

    at: int
    model: str
    kind: Kind
    count: int


class Ledger:
    """The usage of all tenants."""

    def __init__(
        self, state: State, metrics: Metrics, *, now: Callable[[], float] = time.time, wait_s: float = WAIT_S
    ) -> None:
        self._now = now
        self._counts = Counts(state, "usage", keep_s=(KEEP_DAYS + 1) * DAY_S, wait_s=wait_s)
        self._metrics = metrics
        self._waiting: Counter[tuple[str, int, Kind, str]] = Counter()
        self._spent = asyncio.Event()

    def spent(self, kind: TokenKind, model: str, tokens: int) -> None:
        """Count the tokens of one call for the tenant of the task at hand. Each call counts its input once."""
        if not (tenant := spender.get()):
            return
        hour = int(self._now()) // HOUR_S
        self._waiting[tenant, hour, kind, model] += tokens
        self._waiting[tenant, hour, "calls", model] += kind == "input"
        self._spent.set()

    @asynccontextmanager
    async def keeping(self) -> AsyncGenerator[None]:
        """Store what the process's metrics count until the block exits."""
        self._metrics.watch_tokens(self.spent)
        stop = asyncio.Event()
        keep = asyncio.create_task(self._keep_repeatedly(stop))
        try:
            yield
        finally:
            stop.set()
            self._spent.set()
            await asyncio.wait({keep})
            await self.keep()

    async def keep(self) -> None:
        """Send the counts that wait. Those that the state does not take are lost, and counted as such."""
        waiting, self._waiting = self._waiting, Counter()
        counts = {
            (_name(tenant, _day(hour * HOUR_S)), f"{hour % 24:02}|{kind}|{model}"): count
            for (tenant, hour, kind, model), count in waiting.items()
        }
        if not await self._counts.add(counts):
            self._metrics.usage_lost.inc(sum(count for (_, _, kind, _), count in waiting.items() if kind == "calls"))

    async def read(self, tenant: str, after: int, before: int) -> list[Entry]:
        """Return the counts of the hours that begin from ``after`` to before ``before``. Raises Unavailable."""
        first = max(after, before - KEEP_DAYS * DAY_S)
        days = [_day(at) for at in range(first - first % DAY_S, before, DAY_S)]
        found = await self._counts.read([_name(tenant, day) for day in days])
        entries: list[Entry] = []
        for day, counts in zip(days, found, strict=True):
            begins = int(datetime.combine(day, datetime.min.time(), UTC).timestamp())
            for field, count in counts.items():
                hour, kind, model = field.split("|", 2)
                entries.append(Entry(begins + int(hour) * HOUR_S, model, cast(Kind, kind), count))
        return [entry for entry in entries if after <= entry.at < before]

    async def _keep_repeatedly(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self._spent.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), EVERY_S)
            self._spent.clear()
            await self.keep()


def _name(tenant: str, day: date) -> str:
    return f"{tenant}:{day.isoformat()}"


def _day(at: int) -> date:
    return datetime.fromtimestamp(at, UTC).date()
