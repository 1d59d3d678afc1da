"""Reads a feed to its end and goes on with each new change."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Final

from gateway.changes.bell import Bell
from memloop.wire.changes import MOST_CHANGES, ChangePage, MemoryChange, StoreChanges
from memloop.wire.errors import MemloopError
from memloop.wire.memory import Scope
from memloop_clients import StoreClient
from memloop_service.http import Outlet, data_event, error_event

LONGEST_S: Final = 3600.0
"""A stream ends then, and its client comes back with its key, which may have lost its rights."""


async def followed(
    store: StoreClient, bell: Bell, scope: Scope, first: ChangePage, *, longest_s: float
) -> AsyncGenerator[MemoryChange]:
    """Yield the first page's changes, then each later one of the scope. Raises Gone behind a gap."""
    page = first
    until = asyncio.get_running_loop().time() + longest_s
    with bell.following(scope.tenant) as feed:
        while True:
            for change in page.changes:
                yield change
            if not page.has_more and not await _moved(feed.moved_from(page.cursor), until):
                return
            page = await store.changes(StoreChanges(scope=scope, after=page.cursor, limit=MOST_CHANGES))


async def _moved(news: Awaitable[None], until: float) -> bool:
    """Wait for news. Returns False at the end of the stream's time."""
    try:
        async with asyncio.timeout_at(until):
            await news
    except TimeoutError:
        return False
    return True


async def send(changes: AsyncGenerator[MemoryChange], out: Outlet) -> None:
    """Send changes as events; an error is the last one."""
    async with aclosing(changes):
        try:
            async for change in changes:
                await out.send(event_of(change))
        except MemloopError as error:
            await out.send(error_event(error))


def event_of(change: MemoryChange) -> bytes:
    """Return the change as an event whose id is its cursor."""
    return data_event(change.model_dump_json(exclude_none=True).encode(), kind=change.type, event_id=change.id)
