"""Lets a tenant that asks for more than its share begin only while the event loop keeps up.

A busy event loop makes every request wait at each of its dozens of turns, also the few requests of a tenant that asks
for little. While several tenants are at work, one that has asked for more than the mean of them therefore begins a
request only when the loop was in time for a timer; after a late timer it waits as long as the loop was late. So the
others find a loop that is nearly idle, and the large tenant gets what they leave. A tenant that is alone never waits.
Large bodies cost more than one request. Costs fade with a half-life of ``HALF_LIFE_S``.

The idea is that of admission by queueing delay: Nichols and Jacobson, "Controlling Queue Delay" (CoDel), ACM Queue,
2012. The delay that is watched here is that of the event loop.
"""

import asyncio
from typing import Final

from memloop_service.waiting_line import WaitingLine

HALF_LIFE_S: Final = 2.0
COST_BYTES: Final = 1 << 16
"""So many bytes of a body cost as much as a request."""
_TICK_S: Final = 0.002
_LATE_S: Final = 0.004
_LONGEST_S: Final = 0.1
"""One request at least begins in this time, however late the loop is."""
_MOST_WAITING: Final = 512
"""More requests of all tenants are not held up here: admission refuses what is too much."""
_FORGOTTEN: Final = 0.1
_FADED_EVERY_S: Final = 0.5


class Pace:
    """The turns of one process's event loop. Not for several loops."""

    def __init__(self) -> None:
        self._costs: dict[str, float] = {}
        self._total = 0.0
        self._faded_at = 0.0
        self._line = WaitingLine[str]()
        self._waiting = 0
        self._due = 0.0
        self._begun_at = 0.0

    async def turn(self, tenant: str, body_bytes: int = 0) -> None:
        """Wait until the tenant may begin a request with a body of that size."""
        loop = asyncio.get_running_loop()
        self._add(tenant, 1.0 + body_bytes / COST_BYTES, loop.time())
        if self._is_within_share(tenant) or self._waiting >= _MOST_WAITING:
            return
        if not self._line:
            self._look_in(_TICK_S, loop)
        self._waiting += 1
        try:
            await self._line.join(tenant)
        finally:
            self._waiting -= 1

    def _is_within_share(self, tenant: str) -> bool:
        return len(self._costs) == 1 or self._costs[tenant] * len(self._costs) <= self._total

    def _add(self, tenant: str, cost: float, now: float) -> None:
        if now - self._faded_at >= _FADED_EVERY_S:
            kept = 0.5 ** ((now - self._faded_at) / HALF_LIFE_S)
            faded = ((name, spent * kept) for name, spent in self._costs.items())
            self._costs = {name: spent for name, spent in faded if spent >= _FORGOTTEN}
            self._total = sum(self._costs.values())
            self._faded_at = now
        self._costs[tenant] = self._costs.get(tenant, 0.0) + cost
        self._total += cost

    def _look_in(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + seconds
        loop.call_at(self._due, self._look)

    def _look(self) -> None:
        """Let the next request begin if the loop is in time; look again while others wait."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        late_s = now - self._due
        if late_s < _LATE_S or now - self._begun_at >= _LONGEST_S:
            self._line.release()
            self._begun_at = now
        if self._line:
            self._look_in(max(_TICK_S, min(late_s, _LONGEST_S)), loop)
