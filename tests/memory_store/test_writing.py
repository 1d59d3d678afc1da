"""What an add does to what is stored, through the HTTP API."""

import asyncio
from datetime import timedelta

import httpx
import pytest

from memloop.wire.memory import MemoryDraft, StoreAdd
from memory_store.items.documents import now
from tests.memory_store.api import ALICE, StoreApi, day


async def test_a_new_fact_is_inserted_with_both_times(store: StoreApi) -> None:
    written = await store.add("City", "Alice lives in Rome.", timestamp=day(1))

    assert written.outcome == "inserted"
    item = await store.item(written.item.id)
    assert item == written.item
    assert (item.version, item.status, item.supersedes) == (1, "activated", None)
    assert item.valid_from == day(1)
    assert item.created_at > day(1)


async def test_the_same_fact_again_is_touched_and_gains_tags(store: StoreApi) -> None:
    first = await store.add("City", "Alice lives in Rome.", timestamp=day(1))
    draft = MemoryDraft(key="the city", value="alice  lives in rome", tags=("home",))

    [again] = await store.add_all(draft, timestamp=day(2))

    assert (again.outcome, again.item.id) == ("touched", first.item.id)
    assert again.item.tags == ("home",)
    assert again.item.valid_from == day(1)
    assert len(await store.history(first.item.id)) == 1


async def test_the_same_fact_again_joins_its_metadata(store: StoreApi) -> None:
    await store.add("City", "Rome", timestamp=day(1), metadata={"a": 1, "b": 1})

    again = await store.add("City", "Rome", timestamp=day(2), metadata={"b": 2})

    assert (again.outcome, again.item.metadata) == ("touched", {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("See https://x.io/a-b", "See https://x.io/a_b"),
        ("1-2 cups", "1/2 cups"),
        ("The train leaves at 1:10.", "The train leaves at 1.10."),
        (
            "\N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-1-2}",
            "\N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-6}",
        ),
        ("10² km", "102 km"),
    ],
)
async def test_texts_that_differ_in_a_sign_stand_beside_each_other(store: StoreApi, one: str, other: str) -> None:
    written = [await store.add(text, text, timestamp=day(number)) for number, text in enumerate((one, other), 1)]

    assert [each.outcome for each in written] == ["inserted", "inserted"]
    assert {item.memory for item in (await store.page()).items} == {one, other}


@pytest.mark.parametrize(
    ("one", "other"), [("My invite code is aBcD", "My invite code is ABcd"), ("A laser of 5 mW", "A laser of 5 MW")]
)
async def test_a_text_whose_code_differs_in_case_is_a_change(store: StoreApi, one: str, other: str) -> None:
    await store.add(one, one, timestamp=day(1))

    later = await store.add(other, other, timestamp=day(2))

    assert (later.outcome, later.item.memory) == ("superseded", other)


async def test_facts_whose_keys_differ_by_a_vowel_sign_stand_beside_each_other(store: StoreApi) -> None:
    grandfather = await store.add("दादा का नाम", "मोहन", timestamp=day(1))
    grandmother = await store.add("दादी का नाम", "सीता", timestamp=day(2))

    assert [one.outcome for one in (grandfather, grandmother)] == ["inserted", "inserted"]
    assert (await store.item(grandfather.item.id)).status == "activated"


async def test_a_changed_fact_supersedes_and_keeps_history(store: StoreApi) -> None:
    old = await store.add("City", "Rome", timestamp=day(1))

    new = await store.add("City", "Oslo", timestamp=day(3))

    assert (new.outcome, new.item.version, new.item.supersedes) == ("superseded", 2, old.item.id)
    past, live = await store.history(new.item.id)
    assert (past.id, past.status, past.valid_to) == (old.item.id, "archived", day(3))
    assert (live.id, live.status, live.valid_to) == (new.item.id, "activated", None)


async def test_a_changed_fact_with_an_older_event_time_does_not_win(store: StoreApi) -> None:
    live = await store.add("City", "Oslo", timestamp=day(3))

    late = await store.add("City", "Rome", timestamp=day(1))

    assert (late.outcome, late.item.status, late.item.valid_to) == ("superseded", "archived", day(3))
    assert (await store.item(live.item.id)).status == "activated"
    assert await store.found("city") == ["Oslo"]
    assert [version.memory for version in await store.history(live.item.id)] == ["Rome", "Oslo"]


async def test_a_fact_can_change_back(store: StoreApi) -> None:
    values = ["Rome", "Oslo", "Rome"]
    written = [await store.add("City", value, timestamp=day(at)) for at, value in enumerate(values, start=1)]

    assert [one.outcome for one in written] == ["inserted", "superseded", "superseded"]
    assert [version.memory for version in await store.history(written[0].item.id)] == values
    assert len({one.item.id for one in written}) == 3


async def test_an_interlude_splits_what_was_stated_before_and_after(store: StoreApi) -> None:
    await store.add("City", "Rome", timestamp=day(1))
    live = await store.add("City", "Rome", timestamp=day(5))

    await store.add("City", "Oslo", timestamp=day(3))

    times = [(version.memory, version.valid_from, version.valid_to) for version in await store.history(live.item.id)]
    assert times == [("Rome", day(1), day(3)), ("Oslo", day(3), day(5)), ("Rome", day(5), None)]


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "t2"},
        {"user_id": "bob"},
        {"agent_id": "helper"},
        {"run_id": "r1"},
    ],
    ids=str,
)
async def test_facts_of_other_namespaces_do_not_meet(store: StoreApi, other: dict[str, str]) -> None:
    await store.add("City", "Rome")

    assert (await store.of(**other).add("City", "Oslo")).outcome == "inserted"
    assert (await store.add("City", "Rome")).outcome == "touched"


async def test_the_same_key_of_another_type_is_another_fact(store: StoreApi) -> None:
    await store.add("City", "Rome", kind="LongTermMemory")

    assert (await store.add("City", "Oslo", kind="UserMemory")).outcome == "inserted"


async def test_drafts_of_one_add_see_one_another(store: StoreApi) -> None:
    drafts = [MemoryDraft(key="City", value=value) for value in ("Rome", "Rome", "Oslo")]

    written = await store.add_all(*drafts, timestamp=day(1))

    assert [one.outcome for one in written] == ["inserted", "touched", "superseded"]
    assert await store.found("city") == ["Oslo"]


async def test_a_replayed_event_answers_the_same_and_writes_nothing(store: StoreApi) -> None:
    await store.add("City", "Rome", timestamp=day(1))
    drafts = [
        MemoryDraft(key="City", value="Oslo"),
        MemoryDraft(key="Pet", value="cat"),
        MemoryDraft(key="Pet", value="cat"),
    ]
    first = await store.add_all(*drafts, event_id="e1", timestamp=day(2))
    before = await store.page(latest_only="false")

    again = await store.add_all(*drafts, event_id="e1", timestamp=day(2))

    assert [one.outcome for one in first] == ["superseded", "inserted", "touched"]
    assert again == first
    assert await store.page(latest_only="false") == before


async def test_a_replay_answers_the_same_after_the_fact_moved_on(store: StoreApi) -> None:
    first = await store.add("City", "Rome", event_id="e1", timestamp=day(1))
    await store.add("City", "Oslo", event_id="e2", timestamp=day(2))

    again = await store.add("City", "Rome", event_id="e1", timestamp=day(1))

    assert (again.outcome, again.item.id, again.item.status) == ("inserted", first.item.id, "archived")
    assert await store.found("city") == ["Oslo"]


async def test_an_insert_that_was_touched_often_still_replays_as_an_insert(store: StoreApi) -> None:
    await store.add("City", "Rome", event_id="first")
    for number in range(40):
        await store.add("City", "Rome", event_id=f"e{number}")

    assert (await store.add("City", "Rome", event_id="first")).outcome == "inserted"


async def test_one_event_may_write_raw_turns_and_then_memories(store: StoreApi) -> None:
    raw = await store.add("turn", "I live in Rome", kind="RawTurn", event_id="e1")
    memory = await store.add("City", "Rome", event_id="e1")

    assert (raw.outcome, memory.outcome) == ("inserted", "inserted")


async def test_raw_turns_never_conflict(store: StoreApi) -> None:
    values = ["yes", "no", "yes"]

    written = [
        await store.add("turn", value, kind="RawTurn", event_id=f"e{number}") for number, value in enumerate(values)
    ]

    assert [one.outcome for one in written] == ["inserted"] * 3
    assert len((await store.page(include_raw="true")).items) == 3


async def test_a_replayed_raw_turn_is_written_once(store: StoreApi) -> None:
    first = await store.add("turn", "yes", kind="RawTurn", event_id="e1")

    again = await store.add("turn", "yes", kind="RawTurn", event_id="e1")

    assert (again.outcome, again.item.id) == ("inserted", first.item.id)
    assert len((await store.page(include_raw="true")).items) == 1


async def test_a_raw_turn_expires_by_policy_and_a_memory_does_not(store: StoreApi) -> None:
    raw = (await store.add("turn", "hello", kind="RawTurn", timestamp=day(1))).item
    memory = (await store.add("City", "Rome")).item

    assert raw.expires_at == raw.created_at + timedelta(days=30)
    assert memory.expires_at is None


async def test_fifty_parallel_adds_of_one_fact_leave_one_memory(store: StoreApi) -> None:
    written = await asyncio.gather(*(store.add("City", "Rome", event_id=f"e{number}") for number in range(50)))

    assert sorted(one.outcome for one in written) == ["inserted"] + ["touched"] * 49
    assert len({one.item.id for one in written}) == 1
    assert len((await store.page(latest_only="false")).items) == 1


async def test_fifty_parallel_changes_of_one_fact_leave_one_live_memory(store: StoreApi) -> None:
    await asyncio.gather(*(store.add("Age", str(number), timestamp=day(1 + number % 28)) for number in range(50)))

    everything = (await store.page(latest_only="false", limit=100)).items
    assert [item.status for item in everything].count("activated") == 1
    assert len({item.id for item in everything}) == 50


async def test_a_time_without_a_zone_is_taken_as_utc(store: StoreApi) -> None:
    written = await store.add("City", "Rome", timestamp="2026-01-01T00:00:00")

    assert written.item.valid_from == day(1)


@pytest.mark.parametrize(
    "text", ["\x00", "a\x00b", "</section>", "\U0001f600", "x" * 32_768, " "], ids=lambda text: repr(text[:8])
)
async def test_any_text_is_stored_as_it_is(store: StoreApi, text: str) -> None:
    written = await store.add("key", text)

    assert (await store.item(written.item.id)).memory == text
    assert (await store.add("key", text)).outcome == "touched"


async def test_metadata_comes_back_as_it_was(store: StoreApi) -> None:
    metadata = {"a": {"b": [1, 2.5, None, "x", True]}, "big": 2**53 + 1, "é è": "", "n": -1}

    written = await store.add("key", "value", metadata=metadata)

    assert (await store.item(written.item.id)).metadata == metadata


_HEAD = b'{"namespace":{"tenant":"t","user_id":"u"},"drafts":[{"key":"k","value":"v"}]'
_BAD_BODIES: dict[str, tuple[bytes, int]] = {
    "cut": (b"{", 400),
    "not text": (b"\xff", 400),
    "empty": (b"{}", 422),
    "a list": (b"[]", 422),
    "no drafts": (b'{"namespace":{"tenant":"t","user_id":"u"},"drafts":[]}', 422),
    "no tenant": (_HEAD.replace(b'"t"', b'""') + b"}", 422),
    "unknown field": (_HEAD + b',"surprise":1}', 400),
    "NaN": (_HEAD + b',"metadata":{"a":NaN}}', 422),
    "huge number": (_HEAD + b',"metadata":{"a":1' + b"0" * 40 + b"}}", 422),
    "deep metadata": (_HEAD + b',"metadata":' + b'{"a":' * 300 + b"1" + b"}" * 301, 422),
}


@pytest.mark.parametrize("name", _BAD_BODIES)
async def test_a_bad_body_is_refused_in_the_shape_of_openai(http: httpx.AsyncClient, name: str) -> None:
    body, status = _BAD_BODIES[name]

    response = await http.post("/v1/items", content=body)

    assert response.status_code == status, response.text
    assert response.json()["error"]["type"] == "invalid_request_error"


async def test_lone_surrogates_are_refused(store: StoreApi) -> None:
    body = _HEAD.replace(b'"v"', b'"a\\ud800b"') + b',"metadata":{"\\ud800":"\\udfff"}}'

    response = await store.http.post("/v1/items", content=body)

    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_json")


async def test_an_add_that_fails_leaves_nothing_behind(store: StoreApi) -> None:
    request = StoreAdd(namespace=ALICE, drafts=(MemoryDraft(key="k", value="v"),), fencing_token=1)
    newer = request.model_copy(update={"fencing_token": 2, "drafts": (MemoryDraft(key="k", value="w"),)})
    await store.http.post("/v1/items", content=newer.model_dump_json())

    refused = await store.http.post("/v1/items", content=request.model_dump_json())

    assert refused.status_code == 409
    assert [item.memory for item in (await store.page()).items] == ["w"]


async def test_a_drafts_own_end_counts_where_it_is_earlier(store: StoreApi) -> None:
    drafts = [MemoryDraft(key=name, value=f"It is {name}.") for name in ("early", "late", "none")]
    raw = MemoryDraft(key="turn", value="Hi.", memory_type="RawTurn")
    near, far, end = (now() + timedelta(days=number) for number in (1, 9, 5))
    written = await store.add_all(*drafts, expires_at=end, ends=(near, far, None))
    [turn] = await store.add_all(raw, ends=(near,))
    assert [one.item.expires_at for one in written] == [near, end, end]
    assert turn.item.expires_at == near
