"""What the store's client makes of odd ids and odd answers; tests/memory_store/test_client.py asks the store itself."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson
import pytest
from aiohttp import web

from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError, MemloopError, NotFound, Unavailable
from memloop.wire.memory import ItemPatch, MemoryItem
from memloop_clients import StoreClient
from tests.fakes.web_server import serving

DAY = datetime(2026, 1, 31, tzinfo=UTC)
ITEM = MemoryItem(
    id="i/1",
    memory="Ann lives in Rome.",
    key="home",
    memory_type="UserMemory",
    user_id="u",
    valid_from=DAY,
    created_at=DAY,
    updated_at=DAY,
    hash="h",
)


class Store:
    """Answers every route with one thing, and keeps what it was asked."""

    def __init__(self, body: Wire | bytes = b"", status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._raw = body if isinstance(body, bytes) else body.model_dump_json().encode()
        self._status = status
        self._headers = headers
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Json] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs))
        self.bodies.append(orjson.loads(await request.read() or b"{}"))
        return web.Response(body=self._raw, status=self._status, headers=self._headers)


@asynccontextmanager
async def client_of(store: Store) -> AsyncGenerator[StoreClient]:
    async with serving([web.route("*", "/{path:.*}", store.handle)]) as url, StoreClient(url) as client:
        yield client


async def raised(store: Store) -> MemloopError:
    async with client_of(store) as client:
        with pytest.raises(MemloopError) as caught:
            await client.item("x", tenant="t")
    return caught.value


async def test_a_patch_can_clear_a_field() -> None:
    store = Store(ITEM)
    async with client_of(store) as client:
        await client.patch("i1", ItemPatch(expires_at=None), tenant="t")
    assert store.bodies == [{"expires_at": None}]


@pytest.mark.parametrize("item_id", ["..", ".", "", "a/b", "../namespaces"])
async def test_an_id_that_would_be_another_path_is_not_found_and_not_asked(item_id: str) -> None:
    store = Store(ITEM)
    async with client_of(store) as client:
        with pytest.raises(NotFound):
            await client.item(item_id, tenant="t")
    assert store.asked == []


async def test_an_id_with_strange_characters_stays_one_segment() -> None:
    store = Store(ITEM)
    async with client_of(store) as client:
        await client.item("a?b#c%2Fd é", tenant="t")
    assert store.asked == [("GET", "/v1/items/a%3Fb%23c%252Fd%20%C3%A9")]


async def test_a_busy_store_sends_retry_after() -> None:
    got = await raised(Store(b"", 503, {"Retry-After": "2"}))
    assert (type(got), got.retry_after_s) == (Unavailable, 2)


@pytest.mark.parametrize(("status", "body"), [(500, b"oops"), (401, b"{}"), (200, b"{}"), (200, b"\xff")])
async def test_what_the_client_did_not_cause_is_a_dependency_error(status: int, body: bytes) -> None:
    assert type(await raised(Store(body, status))) is DependencyError
