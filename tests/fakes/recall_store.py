"""A memory store over real HTTP that finds what a test tells it to find, and can be slow, broken or gone."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web

from memloop.wire.memory import MemoryItem, SearchHit, SearchResult, StoreSearch
from tests.fakes.ports import free_port
from tests.fakes.web_server import serving

_DAY = datetime(2026, 1, 31, tzinfo=UTC)


def memory(item_id: str, text: str) -> MemoryItem:
    """An item with this id and text."""
    return MemoryItem(
        id=item_id,
        memory=text,
        key=item_id,
        memory_type="UserMemory",
        user_id="u1",
        valid_from=_DAY,
        created_at=_DAY,
        updated_at=_DAY,
        hash=item_id,
    )


class FakeStore:
    """The store's state; ``searches`` holds what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.searches: list[StoreSearch] = []
        self.finds: Sequence[MemoryItem] = ()
        self.delay_s = 0.0
        self.status = 200
        self._port = free_port()
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Listen on a port of its own, at first and again after ``stop``."""
        routes = [web.post("/v1/items/search", self._search), web.get("/readyz", self._ready)]
        self.url = await self._stack.enter_async_context(serving(routes, port=self._port))

    async def stop(self) -> None:
        """Be gone."""
        await self._stack.aclose()

    async def _ready(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"status": "ok"})

    async def _search(self, request: web.Request) -> web.Response:
        self.searches.append(StoreSearch.model_validate_json(await request.read()))
        await asyncio.sleep(self.delay_s)
        hits = tuple(SearchHit(item=item, score=1.0 / rank) for rank, item in enumerate(self.finds, start=1))
        body = SearchResult(results=hits).model_dump_json()
        return web.Response(text=body, status=self.status, content_type="application/json")


@asynccontextmanager
async def fake_store() -> AsyncGenerator[FakeStore]:
    """A running fake store."""
    store = FakeStore()
    await store.start()
    try:
        yield store
    finally:
        await store.stop()
