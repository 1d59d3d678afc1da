"""One item at a time, and lists, through the HTTP API."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from memloop.wire.fields import key_of_text
from memory_store.settings import Settings
from memory_store.vectors.filters import Condition
from memory_store.vectors.port import Page, Point
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import app_over, serving
from tests.memory_store.set_clock import SetClock


async def test_an_edit_keeps_the_id_and_makes_a_version(store: StoreApi) -> None:
    item = (await store.add("City", "Rome", timestamp=day(1))).item

    edited = await store.patch(item.id, {"memory": "Oslo"})

    assert (edited.id, edited.version, edited.memory, edited.key) == (item.id, 2, "Oslo", "City")
    past, live = await store.history(item.id)
    assert (past.memory, past.status, past.id) == ("Rome", "archived", edited.supersedes)
    assert past.valid_to == live.valid_from
    assert edited == await store.item(item.id)
    assert live.model_dump(exclude={"changes"}) == edited.model_dump()


async def test_an_edited_text_is_what_searches_find(store: StoreApi) -> None:
    item = (await store.add("City", "the old town of Rome")).item

    await store.patch(item.id, {"memory": "a harbour in Oslo"})

    [hit] = await store.search("harbour", explain=True)
    assert hit.item.memory == "a harbour in Oslo"
    assert hit.score_breakdown["sparse_rank"] == 1


@pytest.mark.parametrize("end", ["", " and so on" * 80], ids=["short", "longer than a key"])
async def test_a_text_is_known_by_the_words_that_an_edit_gave_it(store: StoreApi, end: str) -> None:
    rome, oslo = (f"I live in {city}{end}" for city in ("Rome", "Oslo"))
    item = (await store.add(key_of_text(rome), rome)).item
    edited = await store.patch(item.id, {"memory": oslo})

    again = await store.add(key_of_text(oslo), oslo)

    assert (again.outcome, again.item.id, edited.key) == ("touched", item.id, key_of_text(oslo))
    assert [past.memory for past in await store.history(item.id)] == [rome, oslo]
    assert [live.memory for live in (await store.page()).items] == [oslo]
    assert (await store.add(key_of_text(rome), rome)).outcome == "inserted"


async def test_an_edit_to_the_words_of_another_text_ends_that_one(store: StoreApi) -> None:
    oslo = (await store.add("I live in Oslo.", "I live in Oslo.")).item
    rome = (await store.add("I live in Rome.", "I live in Rome.")).item

    await store.patch(rome.id, {"memory": "I live in Oslo!"})

    assert [live.id for live in (await store.page()).items] == [rome.id]
    assert (await store.add("I live in Oslo.", "I live in Oslo.")).item.id == rome.id
    assert {oslo.id, rome.id} <= {past.id for past in await store.history(rome.id)}


async def test_an_old_text_that_is_added_again_is_another_memory_and_the_edit_stays(store: StoreApi) -> None:
    tea = (await store.add("I like tea", "I like tea", event_id="e1")).item
    edited = await store.patch(tea.id, {"memory": "I like coffee", "tags": ["drink"], "metadata": {"checked": True}})

    again = await store.add("I like tea", "I like tea", event_id="e2")

    assert (again.outcome, again.item.memory) == ("inserted", "I like tea")
    assert again.item.id != tea.id
    assert await store.item(tea.id) == edited
    assert [past.memory for past in await store.history(tea.id)] == ["I like tea", "I like coffee"]
    assert [past.id for past in await store.history(again.item.id)] == [again.item.id]


async def test_a_job_that_runs_again_after_an_edit_adds_nothing(store: StoreApi) -> None:
    tea = (await store.add("I like tea", "I like tea", event_id="e1")).item
    edited = await store.patch(tea.id, {"memory": "I like coffee"})
    other = (await store.add("I like tea", "I like tea", event_id="e2")).item

    again = [await store.add("I like tea", "I like tea", event_id=event) for event in ("e1", "e2")]

    assert [one.item for one in again] == [edited, other]
    assert len((await store.page()).items) == 2


async def test_a_text_that_is_edited_away_and_added_again_many_times_has_an_id_each_time(store: StoreApi) -> None:
    ids: list[str] = []
    for number in range(4):
        tea = (await store.add("I like tea", "I like tea")).item
        await store.patch(tea.id, {"memory": f"I like drink {number}"})
        ids.append(tea.id)

    assert len(set(ids)) == 4
    assert sorted(item.memory for item in (await store.page()).items) == [f"I like drink {n}" for n in range(4)]


async def test_an_edit_back_to_the_first_words_keeps_the_whole_history(store: StoreApi) -> None:
    tea = (await store.add("I like tea", "I like tea")).item
    coffee = await store.patch(tea.id, {"memory": "I like coffee"})
    await store.patch(tea.id, {"tags": ["drink"]})
    back = await store.patch(tea.id, {"memory": "I like tea"})

    assert (await store.add("I like tea", "I like tea")).item.id == tea.id
    for item_id in (tea.id, coffee.supersedes or ""):
        past = await store.history(item_id)
        assert [one.memory for one in past] == ["I like tea", "I like coffee", "I like coffee", "I like tea"]
        assert [one.version for one in past] == [1, 2, 3, back.version]


class CountingEdge(QdrantEdge):
    """Counts the points that are stored and read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, flush_s=60)
        self.points = 0

    async def upsert(self, points: Sequence[Point]) -> None:
        """Count and store."""
        self.points += len(points)
        await super().upsert(points)

    async def get(self, ids: Sequence[str], *, where: Condition, agreed: bool = False) -> Sequence[Point]:
        """Read and count."""
        found = await super().get(ids, where=where, agreed=agreed)
        self.points += len(found)
        return found

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        """Read and count."""
        page = await super().scroll(where=where, limit=limit, start_id=start_id)
        self.points += len(page.found)
        return page


async def test_the_twentieth_edit_of_a_text_costs_what_the_first_does(settings: Settings, edge_folder: Path) -> None:
    vectors = CountingEdge(edge_folder)
    async with serving(app_over(vectors, settings)) as http:
        store = StoreApi(http)
        score = (await store.add("Score 0", "Score 0")).item
        costs: list[int] = []
        for number in range(1, 21):
            before = vectors.points
            await store.patch(score.id, {"memory": f"Score {number}"})
            costs.append(vectors.points - before)

        assert len(set(costs)) == 1
        assert len(await store.history(score.id)) == 21


async def test_an_edit_of_other_fields_does_not_touch_event_time(store: StoreApi) -> None:
    item = (await store.add("City", "Rome", timestamp=day(1), expires_at=day(28).replace(year=2999))).item

    edited = await store.patch(item.id, {"tags": ["home"], "metadata": {"a": 1}, "expires_at": None})

    assert (edited.tags, edited.metadata, edited.expires_at) == (("home",), {"a": 1}, None)
    assert (edited.valid_from, edited.version) == (day(1), 2)
    assert await store.found("city", as_of=day(2)) == ["Rome"]


async def test_an_empty_edit_changes_nothing(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    assert await store.patch(item.id, {}) == item


async def test_an_edit_wins_over_older_news_that_arrives_later(store: StoreApi) -> None:
    item = (await store.add("City", "Rome", timestamp=day(1))).item
    await store.patch(item.id, {"memory": "Oslo"})

    await store.add("City", "Paris", timestamp=day(3))

    assert await store.found("city") == ["Oslo"]


async def test_an_edit_with_the_right_version_passes(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    for tag, number in (("1", item.version), ('W/"2"', 2), ("*", 3)):
        await store.patch(item.id, {"memory": f"at {number}"}, **{"if-match": tag})


async def test_an_edit_of_another_version_is_refused(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item
    headers = {**store.tenant, "if-match": '"7"'}

    patch = await store.http.patch(f"/v1/items/{item.id}", json={"memory": "Oslo"}, headers=headers)
    delete = await store.http.delete(f"/v1/items/{item.id}", headers=headers)

    assert (patch.status_code, delete.status_code) == (412, 412)
    assert (await store.item(item.id)).memory == "Rome"


async def test_an_if_match_that_is_no_version_is_refused(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    response = await store.http.patch(f"/v1/items/{item.id}", json={}, headers={**store.tenant, "if-match": "abc"})

    assert response.status_code == 400
    assert response.json()["error"]["param"] == "If-Match"


async def test_a_superseded_version_cannot_be_edited(store: StoreApi) -> None:
    old = (await store.add("City", "Rome", timestamp=day(1))).item
    await store.add("City", "Oslo", timestamp=day(2))

    response = await store.http.patch(f"/v1/items/{old.id}", json={"memory": "x"}, headers=store.tenant)

    assert response.status_code == 409


async def test_a_deleted_item_is_gone_from_everything_but_history(store: StoreApi) -> None:
    item = (await store.add("City", "Rome", timestamp=day(1))).item

    await store.delete(item.id)

    assert (await store.http.get(f"/v1/items/{item.id}", headers=store.tenant)).status_code == 404
    assert (await store.http.delete(f"/v1/items/{item.id}", headers=store.tenant)).status_code == 404
    assert await store.found("city", latest_only=False, include_raw=True) == []
    assert await store.found("city", as_of=day(1)) == []
    assert (await store.page(latest_only="false")).items == ()
    [deleted] = await store.history(item.id)
    assert (deleted.status, deleted.memory) == ("deleted", "Rome")
    assert deleted.expires_at is not None


async def test_nothing_of_a_memory_is_shown_after_its_end(settings: Settings, edge_folder: Path) -> None:
    clock = SetClock()
    async with serving(app_over(QdrantEdge(edge_folder, flush_s=60), settings, clock=clock)) as http:
        store, end = StoreApi(http), (clock.time + timedelta(days=1)).isoformat()
        expired = (await store.add("Secret", "Rome is secret", expires_at=end)).item
        deleted = (await store.add("Other", "Oslo is secret", expires_at=end)).item
        edited = (await store.add("I am secret", "I am secret")).item
        await store.delete(deleted.id)
        await store.patch(edited.id, {"tags": ["a"]})
        await store.patch(edited.id, {"expires_at": end})
        assert {past.memory for past in await store.history(edited.id)} == {"I am secret"}
        clock.pass_days(2)
        for item in (expired, deleted, edited):
            shown = await http.get(f"/v1/items/{item.id}/history", headers=store.tenant)
            assert shown.status_code == 404, shown.text
        assert await store.found("secret", latest_only=False, include_raw=True) == []


async def test_a_deleted_fact_can_be_added_again(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item
    await store.delete(item.id)

    again = await store.add("City", "Rome")

    assert (again.outcome, again.item.version) == ("inserted", 2)
    assert again.item.id != item.id
    assert await store.found("city") == ["Rome"]


async def test_a_fresh_item_has_its_version_as_etag(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    response = await store.http.get(f"/v1/items/{item.id}", headers=store.tenant)

    assert response.headers["etag"] == '"1"'


async def test_a_list_walks_every_live_item_once(store: StoreApi) -> None:
    ids = {(await store.add(f"key {number}", "value")).item.id for number in range(7)}
    await store.add("turn", "raw", kind="RawTurn")
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(4):
        page = await store.page(limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item.id for item in page.items]
        cursor = page.next_cursor

    assert (sorted(seen), cursor) == (sorted(ids), None)


async def test_a_cursor_that_no_page_gave_is_refused(store: StoreApi) -> None:
    response = await store.http.get("/v1/items", params={**store.owner, "cursor": "x"})

    assert response.status_code == 422


@pytest.mark.parametrize("item_id", ["x", str(uuid.UUID(int=1)), "%00", "1"])
@pytest.mark.parametrize("tail", ["", "/history"])
async def test_an_id_that_is_not_known_is_404(store: StoreApi, item_id: str, tail: str) -> None:
    response = await store.http.get(f"/v1/items/{item_id}{tail}", headers=store.tenant)

    assert response.status_code == 404


async def test_a_by_id_route_without_a_tenant_is_refused(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    response = await store.http.get(f"/v1/items/{item.id}")

    assert response.status_code == 422
    assert response.json()["error"]["param"] == "x-memloop-tenant"
