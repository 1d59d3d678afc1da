"""Stores traces while a tenant's switch is on.

A trace is deleted by age, by the tenant's cap (oldest first), with its read, when an owner is erased, and when the
switch is turned off.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from redis.asyncio import Redis

from memloop.wire.traces import TraceSettings
from memloop_state.owners import Owner
from memloop_state.table import Table

KIND: Final = "traces"
"""What traces are among the records of their owners."""


class TraceRecords:
    """Every tenant's traces. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, *, keep_s: float, most: int) -> None:
        self._keep_s = keep_s
        self._table = Table(redis, "trace", kind=KIND, keep_s=keep_s, most=most, oldest_out=True, switches=True)

    async def enabled(self, tenant: str) -> bool:
        """Return whether the tenant's traces are kept."""
        return await self._table.is_on(tenant)

    async def enable(self, tenant: str) -> None:
        """Keep the tenant's traces from now on."""
        await self._table.switch(tenant, on=True)

    async def disable(self, tenant: str) -> int:
        """Stop keeping traces and delete the stored ones. Returns the number deleted."""
        await self._table.switch(tenant, on=False)  # first, so that no more are added
        return sum([await self.forget_one(tenant, trace_id) for trace_id in await self._table.ids(tenant)])

    async def settings(self, tenant: str) -> TraceSettings:
        """Return the switch's state and the number of stored traces."""
        kept = len(await self._table.ids(tenant))
        return TraceSettings(tenant=tenant, enabled=await self.enabled(tenant), kept=kept, keep_s=int(self._keep_s))

    async def keep(self, trace_id: str, trace: str, *, tenant: str, owners: Sequence[Owner]) -> str:
        """Store a trace (JSON), replacing one with its id. Returns ``kept``, ``off`` or ``erased``."""
        return await self._table.put(tenant, trace_id, {"trace": trace}, owners=owners)

    async def all(self, tenant: str) -> AsyncGenerator[str]:
        """Yield the tenant's traces as JSON, oldest first."""
        for trace_id in await self._table.ids(tenant):
            if (found := await self._table.get(tenant, trace_id)) is not None:
                yield found["trace"]

    async def forget_one(self, tenant: str, trace_id: str) -> int:
        """Delete one trace. Returns the number deleted, 0 or 1."""
        return int(await self._table.delete(tenant, trace_id) == "deleted")
