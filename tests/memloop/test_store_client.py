from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson
import pytest
from aiohttp import web

from memloop.ports import Recalled
from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError, MemloopError, NotFound, Unavailable
from memloop.wire.memory import (
    Buffer,
    BufferPage,
    Erased,
    ItemPage,
    ItemPatch,
    MemoryDraft,
    MemoryItem,
    Namespace,
    SearchHit,
    SearchResult,
    Source,
    StoreAdd,
    StoreAddResult,
    StoreSearch,
    Written,
)
from memloop.wire.store_requests import History, ItemVersion
from memloop_clients import NamespaceIndex, StoreClient
from tests.fakes.web_server import serving

SPACE = Namespace(tenant="t", user_id="u", agent_id="a")
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
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        raw = await request.read()
        self.bodies.append(orjson.loads(raw) if raw else {})
        return web.Response(body=self._raw, status=self._status, headers=self._headers)


@asynccontextmanager
async def client_of(store: Store, *, key: str | None = None) -> AsyncGenerator[StoreClient]:
    async with serving([web.route("*", "/{path:.*}", store.handle)]) as url, StoreClient(url, key=key) as client:
        yield client


async def raised(store: Store) -> MemloopError:
    async with client_of(store) as client:
        with pytest.raises(MemloopError) as caught:
            await client.item("x", tenant="t")
    return caught.value


async def test_add_sends_drafts_with_key_and_token() -> None:
    store = Store(StoreAddResult(results=(Written(outcome="inserted", item=ITEM),)))
    draft = MemoryDraft(key="home", value="Ann lives in Rome.")
    request = StoreAdd(namespace=SPACE, drafts=(draft,), event_id="e", fencing_token=7)
    async with client_of(store, key="secret") as client:
        result = await client.add(request)
    assert result.results[0].item == ITEM
    assert store.asked == [("POST", "/v1/items")]
    assert StoreAdd.model_validate(store.bodies[0]) == request
    assert store.headers[0]["authorization"] == "Bearer secret"


async def test_search_through_the_index_is_bound_to_its_namespace() -> None:
    store = Store(SearchResult(results=(SearchHit(item=ITEM, score=0.5),)))
    async with client_of(store) as client:
        found = await NamespaceIndex(client, SPACE).search("home", top_k=3)
    assert found == [Recalled("i/1", "Ann lives in Rome.", DAY, "home")]
    assert store.bodies == [StoreSearch(namespace=SPACE, query="home", top_k=3).model_dump(mode="json")]


async def test_listing_names_the_ids_that_are_set() -> None:
    store = Store(ItemPage(items=(ITEM,), next_cursor="n"))
    async with client_of(store) as client:
        page = await client.items(SPACE, cursor="c d", limit=2)
    assert page.next_cursor == "n"
    assert store.asked == [("GET", "/v1/items?tenant=t&user_id=u&agent_id=a&limit=2&cursor=c+d")]


async def test_items_are_read_edited_and_deleted_within_a_tenant() -> None:
    store = Store(ITEM)
    async with client_of(store) as client:
        assert await client.item("i1", tenant="t") == ITEM
        assert await client.patch("i1", ItemPatch(memory="new"), tenant="t", if_version=3) == ITEM
        await client.delete("i1", tenant="t")
    assert store.asked == [("GET", "/v1/items/i1"), ("PATCH", "/v1/items/i1"), ("DELETE", "/v1/items/i1")]
    assert {headers["x-memloop-tenant"] for headers in store.headers} == {"t"}
    assert store.headers[1]["if-match"] == "3"
    assert store.bodies[1] == {"memory": "new"}


async def test_a_patch_can_clear_a_field() -> None:
    store = Store(ITEM)
    async with client_of(store) as client:
        await client.patch("i1", ItemPatch(expires_at=None), tenant="t")
    assert store.bodies == [{"expires_at": None}]


async def test_history_erasure_and_buffers() -> None:
    buffer = Buffer(namespace=SPACE, turns=(Source(role="user", content="hi"),), reason="later")
    version = ItemVersion.model_validate(ITEM.model_dump())
    history, erased = Store(History(versions=(version,))), Store(Erased(vectors=2, buffers=1))
    page, put, cleared = Store(BufferPage(buffers=(buffer,))), Store(buffer), Store(status=204)
    async with client_of(history) as client:
        assert (await client.history("i1", tenant="t")).versions == (version,)
    async with client_of(erased) as client:
        assert (await client.erase(SPACE)).vectors == 2
    async with client_of(page) as client:
        assert (await client.buffers("t", user_id="u")).buffers == (buffer,)
    async with client_of(put) as client:
        assert await client.put_buffer(buffer) == buffer
    async with client_of(cleared) as client:
        await client.clear_buffer(SPACE)
    assert history.asked == [("GET", "/v1/items/i1/history")]
    assert erased.asked == [("DELETE", "/v1/namespaces?tenant=t&user_id=u&agent_id=a")]
    assert page.asked == [("GET", "/v1/buffers?tenant=t&user_id=u")]
    assert put.asked == [("PUT", "/v1/buffers")]
    assert cleared.asked == [("DELETE", "/v1/buffers?tenant=t&user_id=u&agent_id=a")]


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
