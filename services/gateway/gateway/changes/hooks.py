"""Stores each tenant's subscriptions to changes, how far each of them was served, and serves them."""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from typing import Final

from gateway.metrics import Metrics
from gateway.queue import LaneQueue
from gateway.webhooks.deliveries import MOST_HOOKS, Hook, change_delivery, memory_hooks
from memloop.wire.changes import LATEST, MOST_TENANTS, StoreChanges
from memloop.wire.errors import Conflict, DependencyError, Gone, NotFound, RateLimited
from memloop.wire.memory import Scope
from memloop_clients import StoreClient
from memloop_state.lease import Leases
from memloop_state.link import State

_LEASE_MS: Final = 30_000


class Subscribed(Hook):
    """A subscription, and the place in the feed up to which it was served."""

    place: str


class MemoryHooks:
    """The subscriptions. Methods raise Unavailable."""

    def __init__(self, state: State) -> None:
        self._table = memory_hooks(state)
        self._leases = Leases(state)
        self._name = secrets.token_hex(8)
        self.tenants = self._table.tenants

    async def add(self, hook: Hook, *, place: str) -> None:
        """Store a subscription from that place on. Raises Conflict when the tenant has too many."""
        fields = {"hook": hook.model_dump_json(exclude_none=True), "place": place}
        if await self._table.put(hook.tenant, hook.id, fields) == "many":
            raise Conflict(f"A tenant may have {MOST_HOOKS} memory webhooks.", code="too_many_webhooks")

    async def delete(self, tenant: str, hook_id: str) -> None:
        """Delete a subscription. Raises NotFound."""
        if await self._table.delete(tenant, hook_id) == "gone":
            raise NotFound(f"Webhook {hook_id!r} not found.", param="hook_id")

    async def of(self, tenant: str) -> Sequence[Subscribed]:
        """Return the tenant's subscriptions, oldest first."""
        found = await self._table.some(tenant, await self._table.ids(tenant))
        hooks = [(Hook.model_validate_json(row["hook"]), row["place"]) for row in found if row is not None]
        return [Subscribed(**hook.model_dump(), place=place) for hook, place in hooks]

    async def served(self, hook: Hook, place: str) -> None:
        """Note how far a subscription was served; one that was deleted meanwhile stays deleted."""
        await self._table.change(hook.tenant, hook.id, {"place": place}, quick=True)

    async def mine(self) -> bool:
        """Return whether this process is the one that serves, for the next 30 seconds."""
        return await self._leases.hold("memory-webhooks-lock", self._name, lease_ms=_LEASE_MS)


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
                for hook in await self._hooks.of(tenant):
                    if hook.place == newest[tenant]:
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
