"""A tenant's memories page by page, and who has any."""

from typing import Any

import pytest

from memloop.wire.memory import MemoryDraft, Namespace
from tests.memory_store.api import StoreApi, day


async def listed(store: StoreApi, **fields: Any) -> tuple[list[str], int]:
    answer = await store.http.post("/v1/items/list", json={"scope": {"tenant": "t1"}, **fields})
    assert answer.status_code == 200, answer.text
    page = answer.json()
    return [item["memory"] for item in page["items"]], page["total"]


async def entities(store: StoreApi, **scope: str) -> list[tuple[str, str, int]]:
    answer = await store.http.get("/v1/entities", params={"tenant": "t1", **scope})
    assert answer.status_code == 200, answer.text
    return [(one["type"], one["id"], one["memories"]) for one in answer.json()["entities"]]


def of(store: StoreApi, user_id: str, **ids: str) -> StoreApi:
    return StoreApi(store.http, Namespace.model_validate({"tenant": "t1", "user_id": user_id, **ids}))


async def test_pages_show_every_memory_of_the_tenant_once_newest_first(store: StoreApi) -> None:
    for number, user in enumerate(("ann", "bob", "ann", "cem", "bob")):
        await of(store, user).add(f"key {number}", f"fact {number}")
    await StoreApi(store.http, Namespace(tenant="t2", user_id="ann")).add("key", "of another tenant")
    pages = [await listed(store, skip=skip, limit=2) for skip in (0, 2, 4, 6)]
    assert pages == [(["fact 4", "fact 3"], 5), (["fact 2", "fact 1"], 5), (["fact 0"], 5), ([], 5)]


async def test_one_write_of_many_memories_is_cut_into_pages_without_repetition(store: StoreApi) -> None:
    await store.add_all(*[MemoryDraft(key=f"k{number}", value=f"v{number}") for number in range(20)])
    texts = [text for skip in range(0, 20, 3) for text in (await listed(store, skip=skip, limit=3))[0]]
    assert sorted(texts) == sorted(f"v{number}" for number in range(20))


async def test_a_listing_takes_a_scope_a_filter_and_a_view(store: StoreApi) -> None:
    await of(store, "ann", agent_id="home").add("tea", "green tea", metadata={"n": 1})
    await of(store, "bob").add("city", "Rome", timestamp=day(1))
    await of(store, "bob").add("city", "Oslo", timestamp=day(2))
    await of(store, "bob").add("turn", "raw words", kind="RawTurn")
    assert await listed(store, scope={"tenant": "t1", "user_id": "ann"}) == (["green tea"], 1)
    assert await listed(store, filters={"OR": [{"agent_id": "home"}, {"user_id": "bob"}]}) == (["Oslo", "green tea"], 2)
    assert await listed(store, filters={"n": {"gte": 1}}) == (["green tea"], 1)
    assert (await listed(store, latest_only=False))[1] == 3


async def test_a_page_beyond_the_reach_is_refused(store: StoreApi) -> None:
    answer = await store.http.post("/v1/items/list", json={"scope": {"tenant": "t1"}, "skip": 9_900, "limit": 101})
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, "page")


async def test_a_tenant_wide_search_finds_the_memories_of_all_its_users_and_of_no_other(store: StoreApi) -> None:
    await of(store, "ann").add("tea", "Ann drinks green tea.")
    await of(store, "bob").add("tea", "Bob drinks black tea.")
    await StoreApi(store.http, Namespace(tenant="t2", user_id="ann")).add("tea", "Another Ann drinks red tea.")
    found = await store.found("tea", namespace={"tenant": "t1"})
    assert sorted(found) == ["Ann drinks green tea.", "Bob drinks black tea."]
    others = await store.found("tea", namespace={"tenant": "t1"}, filters={"user_id": {"ne": "ann"}})
    assert others == ["Bob drinks black tea."]


async def test_entities_are_those_of_whom_anything_is_stored(store: StoreApi) -> None:
    await of(store, "ann", agent_id="home").add("tea", "green tea")
    await of(store, "ann", run_id="r1").add("milk", "oat milk")
    gone = await of(store, "bob").add("city", "Rome")
    await store.http.delete(f"/v1/items/{gone.item.id}", headers=store.tenant)
    await StoreApi(store.http, Namespace(tenant="t2", user_id="eve")).add("key", "of another tenant")
    assert await entities(store) == [("user", "ann", 2), ("user", "bob", 0), ("agent", "home", 1), ("run", "r1", 1)]
    assert await entities(store, agent_id="home") == [("user", "ann", 1), ("agent", "home", 1)]


@pytest.mark.parametrize("path", ["/v1/items/list", "/v1/entities"])
async def test_no_tenant_no_answer(store: StoreApi, path: str) -> None:
    method = "POST" if path.endswith("list") else "GET"
    answer = await store.http.request(method, path, json={"scope": {}} if method == "POST" else None)
    assert answer.status_code == 422
