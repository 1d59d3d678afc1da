"""Stores each tenant's subscriptions to changes, and how far each of them was served."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gateway.webhooks.deliveries import MOST_HOOKS, memory_hooks
from memloop.wire.base import Wire
from memloop.wire.changes import Change, ChangeType
from memloop.wire.errors import Conflict, NotFound
from memloop_state.lease import Leases
from memloop_state.link import State

_LEASE_MS: Final = 30_000


class Hook(Wire):
    """A subscription: the changes of these types, of one user or of all, go to ``url``."""

    id: str
    tenant: str
    url: str
    events: tuple[ChangeType, ...]
    user_id: str | None = None
    created_at: datetime

    def wants(self, change: Change) -> bool:
        """Return whether the change is subscribed to."""
        return change.type in self.events and self.user_id in (None, change.user_id)


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


def new_hook_id() -> str:
    """Return a new id of 128 random bits."""
    return f"hook_{secrets.token_hex(16)}"
