"""Bundles the store, the bell, the room for followers and the subscriptions into one value."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.changes.bell import Bell
from gateway.changes.following import LONGEST_S
from gateway.changes.hooks import MemoryHooks
from gateway.long_read.following import Followers
from gateway.webhooks.webhooks import Webhooks
from memloop_clients import StoreClient


@dataclass(frozen=True, slots=True)
class Changes:
    """The feeds of all tenants. ``followers`` bounds the streams, together with those of reads, ``longest_s`` each."""

    store: StoreClient
    bell: Bell
    followers: Followers
    hooks: MemoryHooks
    webhooks: Webhooks
    heartbeat_s: float
    longest_s: float = LONGEST_S


async def changes_of(request: Request) -> Changes:
    """Return the slice from the application's state."""
    return cast(Changes, request.app.state.changes)


ChangesDep: TypeAlias = Annotated[Changes, Depends(changes_of)]
