"""Nobody reaches another tenant's or another user's memories, by any route."""

import pytest

from memloop.wire.memory import Buffer, Source
from tests.memory_store.api import StoreApi, day


@pytest.fixture
def other(store: StoreApi) -> StoreApi:
    return store.of(tenant="t2")


async def test_searches_and_lists_stay_within_the_tenant(store: StoreApi, other: StoreApi) -> None:
    await store.add("City", "Rome", metadata={"tenant": "t2"})

    assert await other.found("city", include_raw=True, latest_only=False) == []
    assert await other.found("city", filters={"OR": [{"tenant": "t1"}, {"tenant": "*"}]}) == []
    assert (await other.page(latest_only="false", include_raw="true")).items == ()


@pytest.mark.parametrize("route", ["", "/history"])
async def test_reading_by_id_asks_for_the_tenant(store: StoreApi, other: StoreApi, route: str) -> None:
    item = (await store.add("City", "Rome")).item

    response = await store.http.get(f"/v1/items/{item.id}{route}", headers=other.tenant)

    assert response.status_code == 404


async def test_editing_and_deleting_by_id_ask_for_the_tenant(store: StoreApi, other: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    patch = await store.http.patch(f"/v1/items/{item.id}", json={"memory": "x"}, headers=other.tenant)
    delete = await store.http.delete(f"/v1/items/{item.id}", headers=other.tenant)

    recover = await store.http.post(f"/v1/items/{item.id}/recover", headers=other.tenant)

    assert (patch.status_code, delete.status_code, recover.status_code) == (404, 404, 404)
    assert (await store.item(item.id)).memory == "Rome"


async def test_erasing_stays_within_the_tenant(store: StoreApi, other: StoreApi) -> None:
    await store.add("City", "Rome")

    assert (await other.erase()).vectors == 0
    assert await store.found("city") == ["Rome"]


async def test_an_event_id_of_another_tenant_is_another_event(store: StoreApi, other: StoreApi) -> None:
    await store.add("City", "Rome", event_id="e1")

    written = await other.add("City", "Rome", event_id="e1")

    assert written.outcome == "inserted"
    assert (await store.add("City", "Rome", event_id="e1")).item.id != written.item.id


async def test_buffers_stay_within_the_tenant(store: StoreApi, other: StoreApi) -> None:
    buffer = Buffer(namespace=store.namespace, turns=(Source(role="user", content="hm"),))
    await store.http.put("/v1/buffers", content=buffer.model_dump_json())

    seen = await store.http.get("/v1/buffers", params={"tenant": "t2"})
    cleared = await store.http.delete("/v1/buffers", params=other.owner)

    assert seen.json()["buffers"] == []
    assert cleared.status_code == 204
    mine = await store.http.get("/v1/buffers", params={"tenant": "t1", "user_id": "alice"})
    assert len(mine.json()["buffers"]) == 1


async def test_ids_that_look_like_parts_of_other_ids_do_not_meet(store: StoreApi) -> None:
    await store.of(tenant="a", user_id="b/c").add("City", "Rome", timestamp=day(1))

    written = await store.of(tenant="a/b", user_id="c").add("City", "Oslo", timestamp=day(2))

    assert written.outcome == "inserted"
