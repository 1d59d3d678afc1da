"""Buffers, erasure, fencing tokens and the key, through the HTTP API."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from memloop.wire.memory import Buffer, BufferPage, MemoryDraft, Namespace, SearchResult, Source, StoreAdd, StoreSearch
from memory_store.settings import Settings
from memory_store.vectors.filters import Condition
from memory_store.vectors.port import Query, Ranked
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.ports import free_port
from tests.fakes.redis_server import RedisServer
from tests.memory_store.api import ALICE, StoreApi
from tests.memory_store.conftest import MODEL, app_over, serving


class SettledWhenRanked(QdrantEdge):
    """Another process settles a buffer just after a search has ranked the memories."""

    settle: Callable[[], Awaitable[object]]

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        """Rank, then settle."""
        found = await super().rank(queries, where=where, corpus=corpus, limit=limit)
        await self.settle()
        return found


def buffer(content: str = "hm", **ids: str) -> Buffer:
    namespace = ALICE.model_copy(update=ids)
    return Buffer(namespace=namespace, turns=(Source(role="user", content=content),), reason="unclear")


async def put(http: httpx.AsyncClient, one: Buffer) -> Buffer:
    response = await http.put("/v1/buffers", content=one.model_dump_json())
    assert response.status_code == 200, response.text
    return Buffer.model_validate_json(response.content)


async def listed(http: httpx.AsyncClient, **params: str) -> list[Buffer]:
    response = await http.get("/v1/buffers", params={"tenant": "t1", **params})
    return list(BufferPage.model_validate_json(response.content).buffers)


async def searched(http: httpx.AsyncClient, query: str) -> SearchResult:
    asked = StoreSearch(namespace=ALICE, query=query, include_buffered=True)
    answer = await http.post("/v1/items/search", content=asked.model_dump_json())
    assert answer.status_code == 200, answer.text
    return SearchResult.model_validate_json(answer.content)


def _name(namespace: Namespace) -> str:
    return f"{namespace.user_id}/{namespace.agent_id}/{namespace.run_id}"


async def test_a_buffer_comes_back_with_its_time(http: httpx.AsyncClient) -> None:
    stored = await put(http, buffer("a\x00b \U0001f600"))

    assert stored.updated_at is not None
    assert await listed(http) == [stored]


async def test_a_turn_that_has_expired_is_not_pending(http: httpx.AsyncClient) -> None:
    for run, years in (("over", -1), ("going on", 1)):
        ends = datetime.now(UTC) + timedelta(days=365 * years)
        await put(http, buffer(run, run_id=run).model_copy(update={"expires_at": ends}))

    assert [turn.content for turn in (await searched(http, "tea")).pending] == ["going on"]


async def test_a_buffer_is_replaced(http: httpx.AsyncClient) -> None:
    await put(http, buffer("one"))
    await put(http, buffer("two"))

    assert [one.turns[0].content for one in await listed(http)] == ["two"]


async def test_buffers_are_listed_by_user_or_by_tenant(http: httpx.AsyncClient) -> None:
    for one in (buffer(), buffer(agent_id="a"), buffer(user_id="bob")):
        await put(http, one)

    assert sorted(_name(one.namespace) for one in await listed(http)) == [
        "alice/None/None",
        "alice/a/None",
        "bob/None/None",
    ]
    assert [_name(one.namespace) for one in await listed(http, user_id="bob")] == ["bob/None/None"]


async def test_a_search_shows_a_buffered_turn_that_is_settled_meanwhile(settings: Settings) -> None:
    vectors = SettledWhenRanked(settings.data_dir, flush_s=60)
    async with serving(app_over(vectors, settings)) as http:
        await StoreApi(http).add("Pet", "a grey cat")
        await put(http, buffer("a grey dog"))
        vectors.settle = lambda: http.delete("/v1/buffers", params={"tenant": "t1", "user_id": "alice"})
        found = await searched(http, "grey")
        left = await listed(http)
    assert ([turn.content for turn in found.pending], found.pending_complete) == (["a grey dog"], True)
    assert [hit.item.memory for hit in found.results] == ["a grey cat"]
    assert left == []


async def test_a_search_without_redis_is_marked_as_incomplete(edge_folder: Path) -> None:
    settings = Settings(redis_url=f"redis://127.0.0.1:{free_port()}/0", data_dir=edge_folder, embedding_model=MODEL)
    async with serving(app_over(QdrantEdge(edge_folder, flush_s=60), settings)) as http:
        found = await searched(http, "grey")
    assert (found.results, found.pending, found.pending_complete) == ((), (), False)


async def test_clearing_takes_exactly_one_buffer(http: httpx.AsyncClient) -> None:
    for one in (buffer(), buffer(agent_id="a"), buffer(run_id="a")):
        await put(http, one)

    for _ in range(2):
        response = await http.delete("/v1/buffers", params={"tenant": "t1", "user_id": "alice"})
        assert response.status_code == 204

    assert sorted(_name(one.namespace) for one in await listed(http)) == ["alice/None/a", "alice/a/None"]


async def test_a_user_without_buffers_is_forgotten(http: httpx.AsyncClient, redis_server: RedisServer) -> None:
    await put(http, buffer())
    await http.delete("/v1/buffers", params={"tenant": "t1", "user_id": "alice"})

    assert redis_server.size() == 0


async def idle(http: httpx.AsyncClient, before: datetime, **params: int) -> list[str]:
    response = await http.get("/v1/buffers/idle", params={"before": before.isoformat(), **params})
    assert response.status_code == 200, response.text
    return [_name(one.namespace) for one in BufferPage.model_validate_json(response.content).buffers]


async def test_idle_buffers_of_all_tenants_are_found_the_oldest_first(http: httpx.AsyncClient) -> None:
    start = datetime.now(UTC)
    for one in (buffer(), buffer(tenant="t2", user_id="bob"), buffer(user_id="carol")):
        await put(http, one)
    await put(http, buffer("changed"))

    end = datetime.now(UTC)
    assert await idle(http, start) == []
    assert await idle(http, end) == ["bob/None/None", "carol/None/None", "alice/None/None"]
    assert await idle(http, end, limit=1) == ["bob/None/None"]


async def test_a_cleared_buffer_is_idle_no_more(http: httpx.AsyncClient) -> None:
    await put(http, buffer())
    await http.delete("/v1/buffers", params={"tenant": "t1", "user_id": "alice"})

    assert await idle(http, datetime.now(UTC)) == []


async def test_a_buffer_that_is_too_long_is_refused(http: httpx.AsyncClient) -> None:
    turns = tuple(Source(role="user", content=str(number)) for number in range(201))
    one = buffer().model_copy(update={"turns": turns})

    response = await http.put("/v1/buffers", content=one.model_dump_json())

    assert response.status_code == 413
    assert response.json()["error"]["code"] == "buffer_too_long"


async def test_erasing_takes_memories_history_raw_turns_and_buffers(store: StoreApi) -> None:
    await store.add("City", "Rome")
    await store.add("City", "Oslo")
    await store.of(agent_id="a").add("turn", "hello", kind="RawTurn")
    deleted = await store.add("Pet", "cat")
    await store.delete(deleted.item.id)
    await store.of(user_id="bob").add("City", "Paris")
    for one in (buffer(), buffer(agent_id="a"), buffer(user_id="bob")):
        await put(store.http, one)

    erased = await store.erase()

    assert (erased.vectors, erased.buffers) == (4, 2)
    assert (await store.page(latest_only="false", include_raw="true")).items == ()
    assert (await store.http.get(f"/v1/items/{deleted.item.id}/history", headers=store.tenant)).status_code == 404
    assert await store.of(user_id="bob").found("city") == ["Paris"]
    assert [one.namespace.user_id for one in await listed(store.http)] == ["bob"]
    assert (await store.erase()).vectors == 0


async def test_erasing_one_agent_leaves_the_users_other_memories(store: StoreApi) -> None:
    await store.add("City", "Rome")
    await store.of(agent_id="a").add("City", "Oslo")
    await put(store.http, buffer())
    await put(store.http, buffer(agent_id="a"))

    erased = await store.of(agent_id="a").erase()

    assert (erased.vectors, erased.buffers) == (1, 1)
    assert await store.found("city") == ["Rome"]
    assert len(await listed(store.http)) == 1


async def add_with_token(http: httpx.AsyncClient, token: int, user_id: str = "alice") -> httpx.Response:
    namespace = ALICE.model_copy(update={"user_id": user_id})
    draft = MemoryDraft(key="City", value=f"written with {token}")
    request = StoreAdd(namespace=namespace, drafts=(draft,), fencing_token=token)
    return await http.post("/v1/items", content=request.model_dump_json())


async def test_a_stale_fencing_token_is_refused(http: httpx.AsyncClient) -> None:
    statuses = [(await add_with_token(http, token)).status_code for token in (5, 5, 7, 6, 7)]

    assert statuses == [200, 200, 200, 409, 200]
    refused = await add_with_token(http, 1)
    assert refused.json()["error"]["code"] == "stale_fencing_token"


async def test_a_stale_writer_can_neither_replace_nor_clear_a_buffer(http: httpx.AsyncClient) -> None:
    await add_with_token(http, 7)
    await put(http, buffer("kept"))
    stale, current = {"x-fencing-token": "6"}, {"x-fencing-token": "8"}
    params = {"tenant": "t1", "user_id": "alice"}

    replaced = await http.put("/v1/buffers", content=buffer("stale").model_dump_json(), headers=stale)
    cleared = await http.delete("/v1/buffers", params=params, headers=stale)
    assert [response.status_code for response in (replaced, cleared)] == [409, 409]
    assert replaced.json()["error"]["code"] == "stale_fencing_token"
    assert [one.turns[0].content for one in await listed(http)] == ["kept"]

    assert (await http.delete("/v1/buffers", params=params, headers=current)).status_code == 204
    assert await listed(http) == []
    assert (await add_with_token(http, 7)).status_code == 409


async def test_lanes_have_tokens_of_their_own(http: httpx.AsyncClient) -> None:
    await add_with_token(http, 9)

    assert (await add_with_token(http, 1, user_id="bob")).status_code == 200


async def test_without_redis_memories_can_be_read_but_not_fenced(settings: Settings) -> None:
    server = RedisServer.start()
    mine = settings.model_copy(update={"redis_url": server.url})
    async with serving(app_over(QdrantEdge(mine.data_dir, flush_s=60), mine)) as http:
        store = StoreApi(http)
        await store.add("City", "Rome")
        server.stop()

        assert await store.found("city") == ["Rome"]
        assert (await add_with_token(http, 1)).status_code == 503
        assert (await http.get("/v1/buffers", params={"tenant": "t1"})).status_code == 503
        ready = await http.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["dependencies"]["vectors"] == "ok"


async def test_a_ready_store_names_its_dependencies(http: httpx.AsyncClient) -> None:
    ready = await http.get("/readyz")

    assert ready.json() == {"status": "ok", "dependencies": {"redis": "ok", "vectors": "ok"}}


async def test_metrics_count_writes_and_time_searches(store: StoreApi) -> None:
    await store.add("City", "Rome")
    await store.found("city")

    text = (await store.http.get("/metrics")).text

    assert 'memory_store_writes_total{outcome="inserted",rule="new fact"} 1.0' in text
    assert 'memory_search_seconds_count{stage="total"} 1.0' in text


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic secret", "Bearer", "Bearer s\u00e9cret"])
async def test_a_request_without_the_key_is_refused(settings: Settings, header: str) -> None:
    guarded = Settings.model_validate({**settings.model_dump(), "store_key": "secret"})
    async with serving(app_over(QdrantEdge(guarded.data_dir, flush_s=60), guarded)) as http:
        headers = [(b"authorization", header.encode())] if header else []

        refused = await http.get("/v1/buffers", params={"tenant": "t1"}, headers=headers)
        allowed = await http.get("/v1/buffers", params={"tenant": "t1"}, headers={"authorization": "Bearer secret"})

    assert (refused.status_code, allowed.status_code) == (401, 200)
    assert refused.json()["error"]["type"] == "authentication_error"
