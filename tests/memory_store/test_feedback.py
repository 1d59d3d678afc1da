"""Verdicts of clients on memories: what search makes of them, and where they end."""

import httpx
import pytest

from memloop.wire.memory import MemoryItem
from tests.memory_store.api import StoreApi, day
from tests.memory_store.set_clock import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


async def test_a_verdict_stands_in_the_memory_and_its_history(store: StoreApi, clock: SetClock) -> None:
    item = (await store.add("City", "Rome")).item
    clock.pass_days(1)

    judged = await store.judge(item.id, "outdated", reason="moved in May")

    assert judged.feedback is not None
    assert (judged.feedback.verdict, judged.feedback.reason) == ("outdated", "moved in May")
    assert judged.feedback.at == judged.updated_at == clock.time
    assert judged.version == item.version
    assert await store.item(item.id) == judged
    [version] = await store.history(item.id)
    assert version.changes[-1].rule == "outdated"
    assert "searches lower it" in version.changes[-1].because


async def test_a_memory_without_a_verdict_looks_as_before(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    response = await store.http.get(f"/v1/items/{item.id}", headers=store.tenant)

    assert "feedback" not in response.json()


async def test_a_wrong_memory_is_found_by_no_search_but_stays_listed(store: StoreApi) -> None:
    rome = (await store.add("City", "Alice lives in Rome")).item
    await store.add("Pet", "Alice has a cat")

    await store.judge(rome.id, "wrong")

    assert await store.found("Where does Alice live?") == ["Alice has a cat"]
    assert rome.id in [item.id for item in (await store.page()).items]


async def test_wrong_memories_take_no_places_of_others(store: StoreApi) -> None:
    for number in range(60):
        item = (await store.add(f"City {number}", "Alice lives in Rome by the river")).item
        await store.judge(item.id, "wrong")
    await store.add("Pet", "Alice has a cat")

    assert await store.found("Alice lives in Rome by the river", top_k=5) == ["Alice has a cat"]


async def test_an_outdated_memory_falls_behind_its_equals(store: StoreApi) -> None:
    old = (await store.add("Town", "Alice lives in Rome", timestamp=day(2))).item
    await store.add("Home", "Alice lives in Oslo", timestamp=day(1))

    await store.judge(old.id, "outdated")
    found = await store.search("Where does Alice live?", explain=True)

    assert [hit.item.memory for hit in found] == ["Alice lives in Oslo", "Alice lives in Rome"]
    assert found[1].score_breakdown["outdated"] < 0


async def test_a_question_about_an_earlier_time_finds_the_outdated_memory_as_before(store: StoreApi) -> None:
    old = (await store.add("Town", "Alice lives in Rome", timestamp=day(1))).item
    before = await store.search("Where does Alice live?", as_of=day(3).isoformat())

    await store.judge(old.id, "outdated")

    after = await store.search("Where does Alice live?", as_of=day(3).isoformat())
    assert [hit.score for hit in after] == [hit.score for hit in before]


async def test_a_helpful_memory_rises_above_its_equals_by_its_own_share(store: StoreApi) -> None:
    older = (await store.add("a", "a grey cat", timestamp=day(1))).item
    await store.add("a g", "a grey cat", timestamp=day(2))

    await store.judge(older.id, "helpful")
    best, _ = await store.search("grey cat", explain=True)

    assert best.item.id == older.id
    assert best.score_breakdown["helpful"] > 0


async def test_feedback_taken_back_leaves_no_trace_in_a_search(store: StoreApi) -> None:
    item = (await store.add("City", "Alice lives in Rome")).item
    before = await store.search("Where does Alice live?", explain=True)

    await store.judge(item.id, "wrong")
    await store.judge(item.id, None)
    after = await store.search("Where does Alice live?", explain=True)

    assert [hit.score_breakdown for hit in after] == [hit.score_breakdown for hit in before]
    [version] = await store.history(item.id)
    assert [change.rule for change in version.changes[-2:]] == ["wrong", "feedback withdrawn"]


async def test_repeating_a_verdict_changes_nothing(store: StoreApi, clock: SetClock) -> None:
    item = (await store.add("City", "Rome")).item
    judged = await store.judge(item.id, "helpful")
    clock.pass_days(1)

    assert await store.judge(item.id, "helpful") == judged


async def test_a_later_statement_of_the_fact_lifts_a_verdict_against_it(store: StoreApi, clock: SetClock) -> None:
    item = (await store.add("City", "Rome")).item
    await store.judge(item.id, "wrong")
    clock.pass_days(1)

    stated = (await store.add("City", "Rome")).item

    assert (stated.id, stated.feedback) == (item.id, None)


async def test_an_older_statement_of_the_fact_lifts_no_verdict(store: StoreApi) -> None:
    item = (await store.add("City", "Rome", timestamp=day(2))).item
    await store.judge(item.id, "wrong")

    stated = (await store.add("City", "Rome", timestamp=day(3))).item

    assert stated.id == item.id
    assert stated.feedback is not None


async def test_an_edited_text_starts_without_a_verdict(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item
    await store.judge(item.id, "wrong")

    assert (await store.patch(item.id, {"tags": ["home"]})).feedback is not None
    assert (await store.patch(item.id, {"memory": "Oslo"})).feedback is None


async def test_feedback_on_a_deleted_memory_is_refused(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item
    await store.delete(item.id)

    response = await judging(store, item, {"feedback": "wrong"})

    assert response.status_code == 404


async def test_feedback_on_another_tenants_memory_is_refused(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item

    response = await judging(store.of(tenant="other"), item, {"feedback": "wrong"})

    assert response.status_code == 404
    assert (await store.item(item.id)).feedback is None


async def test_a_raw_turn_keeps_its_vectors_under_a_verdict(store: StoreApi) -> None:
    item = (await store.add("turn", "I bought a kettle", kind="RawTurn")).item

    await store.judge(item.id, "helpful")

    [hit] = await store.search("kettle", include_raw=True, explain=True)
    assert hit.score_breakdown["dense_score"] > 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"feedback": "bad"}, 422),
        ({"feedback": "wrong", "reason": "x" * 1001}, 422),
        ({"feedback": "wrong", "at": "now"}, 400),
    ],
)
async def test_other_bodies_are_refused(store: StoreApi, body: dict[str, object], status: int) -> None:
    item = (await store.add("City", "Rome")).item

    assert (await judging(store, item, body)).status_code == status


async def judging(store: StoreApi, item: MemoryItem, body: dict[str, object]) -> httpx.Response:
    return await store.http.post(f"/v1/items/{item.id}/feedback", json=body, headers=store.tenant)
