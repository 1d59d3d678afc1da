"""The worker's part: queues a delivery for each change that a webhook subscribes to.

One worker at a time does this. A delivery's id follows from the subscription and the change, so a change that is
dispatched twice after a crash is queued once, and a receiver can recognise duplicates.
"""

import asyncio
import logging
from typing import Final

from gateway.changes.hooks import Hook, MemoryHooks
from gateway.metrics import Metrics
from gateway.queue import LaneQueue
from gateway.webhooks.deliveries import change_delivery
from memloop.wire.changes import LATEST, MOST_TENANTS, StoreChanges
from memloop.wire.errors import DependencyError, Gone, RateLimited
from memloop.wire.memory import Scope
from memloop_clients import StoreClient
from memloop_state.link import State

_LOG = logging.getLogger(__name__)
_MOST_PAGES: Final = 10
"""Pages of one subscription in a round, so that others get their turn."""
_PAGE: Final = 200


class Dispatcher:
    """Serves all subscriptions, round after round."""

    def __init__(self, state: State, store: StoreClient, queue: LaneQueue, metrics: Metrics) -> None:
        self._store = store
        self._hooks = MemoryHooks(state)
        self._queue = queue
        self._metrics = metrics

    async def run(self, *, every_s: float) -> None:
        """Serve for ever; an outage is waited out."""
        while True:
            try:
                await self.round()
            except DependencyError as error:
                _LOG.warning("memory webhooks: %s", error.message)
            await asyncio.sleep(every_s)

    async def round(self) -> None:
        """Serve every subscription once, unless another worker does."""
        tenants = await self._hooks.tenants()
        if not tenants or not await self._hooks.mine():
            return
        for start in range(0, len(tenants), MOST_TENANTS):
            some = tenants[start : start + MOST_TENANTS]
            newest = await self._store.newest_changes(some)
            for tenant in some:
                await self._serve_tenant(tenant, newest[tenant])

    async def _serve_tenant(self, tenant: str, newest: str) -> None:
        for hook in await self._hooks.of(tenant):
            if hook.place == newest:
                continue
            if not await self._hooks.mine():
                return
            try:
                await self._serve(hook, hook.place)
            except RateLimited as error:
                _LOG.warning("memory webhook %s waits: %s", hook.id, error.message)

    async def _serve(self, hook: Hook, place: str) -> None:
        scope = Scope(tenant=hook.tenant, user_id=hook.user_id)
        for _ in range(_MOST_PAGES):
            try:
                page = await self._store.changes(StoreChanges(scope=scope, after=place, limit=_PAGE))
            except Gone:
                _LOG.warning("memory webhook %s: changes were cut off before they were sent", hook.id)
                self._metrics.memory_changes_missed.inc()
                page = await self._store.changes(StoreChanges(scope=scope, after=LATEST))
            for change in page.changes:
                if hook.wants(change):
                    await self._queue.admit(change_delivery(change, hook=hook, at=self._queue.keys))
            place = page.cursor
            await self._hooks.served(hook, place)
            if not page.has_more:
                return
