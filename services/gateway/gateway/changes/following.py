"""Reads a feed to its end and goes on with each new change: one question to the store per process wakes all readers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Final

from memloop.chores import ended
from memloop.wire.changes import MOST_CHANGES, MOST_TENANTS, ChangePage, MemoryChange, StoreChanges
from memloop.wire.errors import MemloopError
from memloop.wire.memory import Scope
from memloop_clients import StoreClient
from memloop_service.http import data_event

_LOG = logging.getLogger(__name__)
_EVERY_S: Final = 0.5


class _Feed:
    """A followed feed: the place of its newest change as far as it is known, and its followers."""

    def __init__(self) -> None:
        self.place = ""
        self.followers = 0
        self._moved = asyncio.Event()

    def moves_to(self, place: str) -> None:
        if place != self.place:
            self.place = place
            self._moved.set()
            self._moved = asyncio.Event()

    async def moved_from(self, place: str) -> None:
        """Wait until the feed is elsewhere."""
        while self.place == place:
            await self._moved.wait()


class Bell:
    """Looks for new changes of the followed tenants, while there are any."""

    def __init__(self, store: StoreClient) -> None:
        self._store = store
        self._feeds: dict[str, _Feed] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def following(self, tenant: str) -> Generator[_Feed]:
        """Follow the tenant's feed during the block."""
        feed = self._feeds.setdefault(tenant, _Feed())
        feed.followers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look_repeatedly(), name="change feeds")
        try:
            yield feed
        finally:
            feed.followers -= 1
            if not feed.followers:
                del self._feeds[tenant]

    async def aclose(self) -> None:
        """Stop looking."""
        if self._task is not None:
            await ended({self._task})

    async def _look_repeatedly(self) -> None:
        try:
            while self._feeds:
                try:
                    tenants = list(self._feeds)
                    for start in range(0, len(tenants), MOST_TENANTS):
                        places = await self._store.newest_changes(tenants[start : start + MOST_TENANTS])
                        for tenant, place in places.items():
                            if tenant in self._feeds:
                                self._feeds[tenant].moves_to(place)
                except MemloopError as error:
                    _LOG.warning("change feeds: %s", error.message)
                await asyncio.sleep(_EVERY_S)
        finally:
            self._task = None


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
            if asyncio.get_running_loop().time() >= until:
                return
            if not page.has_more:
                try:
                    async with asyncio.timeout_at(until):
                        await feed.moved_from(page.cursor)
                except TimeoutError:
                    return
            page = await store.changes(StoreChanges(scope=scope, after=page.cursor, limit=MOST_CHANGES))


def event_of(change: MemoryChange) -> bytes:
    """Return the change as an event whose id is its cursor."""
    return data_event(change.model_dump_json(exclude_none=True).encode(), kind=change.type, event_id=change.id)
