"""Taking a soft deletion back, and what history says about every version."""

from datetime import timedelta

import pytest

from tests.memory_store.api import StoreApi, day
from tests.memory_store.set_clock import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


async def test_a_deleted_memory_comes_back_as_it_was(store: StoreApi, clock: SetClock) -> None:
    ends = clock.time + timedelta(days=90)
    item = (await store.add("City", "Rome", timestamp=day(1), expires_at=ends, metadata={"a": 1})).item
    await store.delete(item.id)
    clock.pass_days(29)

    back = await store.recover(item.id)

    assert back == item.model_copy(update={"updated_at": clock.time})
    assert await store.item(item.id) == back
    assert await store.found("city") == ["Rome"]


async def test_recovering_twice_changes_nothing(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item
    await store.delete(item.id)

    assert await store.recover(item.id) == await store.recover(item.id)


async def test_statements_since_the_deletion_stay_live(store: StoreApi) -> None:
    rome = (await store.add("City", "Rome", timestamp=day(1))).item
    await store.delete(rome.id)
    oslo = (await store.add("City", "Oslo", timestamp=day(5))).item

    back = await store.recover(rome.id)

    assert (back.id, back.status, back.valid_to) == (rome.id, "archived", day(5))
    assert await store.found("city") == ["Oslo"]
    assert (await store.item(oslo.id)).supersedes == rome.id
    assert await store.found("city", as_of=day(2)) == ["Rome"]


async def test_an_older_statement_since_the_deletion_is_superseded_again(store: StoreApi) -> None:
    rome = (await store.add("City", "Rome", timestamp=day(5))).item
    await store.delete(rome.id)
    await store.add("City", "Oslo", timestamp=day(1))

    await store.recover(rome.id)

    assert await store.found("city") == ["Rome"]
    assert await store.found("city", as_of=day(2)) == ["Oslo"]


async def test_where_the_fact_was_added_again_that_memory_is_returned(store: StoreApi) -> None:
    first = (await store.add("City", "Rome", timestamp=day(1))).item
    await store.delete(first.id)
    second = (await store.add("City", "Rome", timestamp=day(5))).item

    back = await store.recover(first.id)

    assert (back.id, back.valid_from) == (second.id, day(1))
    assert await store.found("city") == ["Rome"]


async def test_a_deleted_raw_turn_comes_back(store: StoreApi) -> None:
    turn = (await store.add("turn", "hello", kind="RawTurn", timestamp=day(1))).item
    await store.delete(turn.id)

    await store.recover(turn.id)

    assert await store.found("hello", include_raw=True) == ["hello"]


@pytest.mark.parametrize("days", [30, 10], ids=["the deletion is final", "it would have expired"])
async def test_too_late_is_not_found(store: StoreApi, clock: SetClock, days: float) -> None:
    item = (await store.add("City", "Rome", expires_at=clock.time + timedelta(days=10))).item
    await store.delete(item.id)
    clock.pass_days(days)

    response = await store.http.post(f"/v1/items/{item.id}/recover", headers=store.tenant)

    assert response.status_code == 404


async def test_a_former_state_of_a_text_comes_back_into_history_only(store: StoreApi, clock: SetClock) -> None:
    tea = (await store.add("I like tea", "I like tea")).item
    clock.pass_days(1)
    coffee = await store.patch(tea.id, {"memory": "I like coffee"})
    await store.delete(coffee.supersedes or "")

    back = await store.recover(coffee.supersedes or "")

    assert (back.memory, back.status, back.valid_to) == ("I like tea", "archived", coffee.valid_from)
    assert [live.id for live in (await store.page()).items] == [tea.id]


async def test_an_id_is_not_given_to_another_memory_once_the_former_text_has_expired(
    store: StoreApi, clock: SetClock
) -> None:
    tea = (await store.add("I like tea", "I like tea", expires_at=clock.time + timedelta(days=1))).item
    edited = await store.patch(tea.id, {"memory": "I like coffee", "expires_at": None})
    clock.pass_days(2)

    again = (await store.add("I like tea", "I like tea")).item

    assert again.id != tea.id
    assert await store.item(tea.id) == edited


async def test_an_expired_memory_takes_no_part_in_later_statements(store: StoreApi, clock: SetClock) -> None:
    await store.add("City", "Rome", timestamp=day(5), expires_at=clock.time + timedelta(days=1))
    clock.pass_days(2)

    written = await store.add("City", "Oslo", timestamp=day(1))

    assert (written.outcome, written.item.status) == ("inserted", "activated")
    assert await store.found("city") == ["Oslo"]


async def test_history_names_the_rule_that_made_each_version(store: StoreApi) -> None:
    rome = (await store.add("The city", "Rome", timestamp=day(1))).item
    await store.add("City", "Rome", timestamp=day(2))
    oslo = (await store.add("City", "Oslo", timestamp=day(3))).item

    past, live = await store.history(oslo.id)

    assert [(change.rule, change.other) for change in past.changes] == [
        ("new fact", None),
        ("same fact", None),
        ("overtaken", oslo.id),
    ]
    assert [(change.rule, change.other) for change in live.changes] == [("changed fact", rome.id)]
    assert "'city'" in live.changes[0].because


async def test_history_records_edits_deletions_and_recoveries(store: StoreApi) -> None:
    item = (await store.add("City", "Rome")).item
    await store.patch(item.id, {"memory": "Oslo"})
    await store.delete(item.id)
    await store.recover(item.id)

    *_, live = await store.history(item.id)

    assert [change.rule for change in live.changes] == ["new fact", "edited", "deleted", "recovered"]


async def test_history_keeps_the_first_and_the_newest_of_many_decisions(store: StoreApi) -> None:
    written = [await store.add("City", "Rome", timestamp=day(number)) for number in range(1, 25)]

    [live] = await store.history(written[0].item.id)

    assert [change.rule for change in live.changes] == ["new fact", *["same fact"] * 16]
