"""Memories keep the days that their texts name, whoever wrote them and without a model."""

import json
from datetime import UTC, date, datetime, timedelta, timezone

from memloop.wire.memory import MemoryDraft, NamedTime, Namespace, Source
from tests.memory_store.api import StoreApi
from tests.memory_store.test_transfer import lines_of, take

FRIDAY = datetime(2026, 11, 27, 15, tzinfo=UTC)
LAST_FRIDAY = NamedTime(text="last Friday", start=date(2026, 11, 20), end=date(2026, 11, 20))


async def test_a_memory_keeps_the_day_that_its_words_meant_when_they_were_said(store: StoreApi) -> None:
    written = await store.add("dog", "Ann's dog was ill last Friday.", timestamp=FRIDAY)

    assert written.item.times == (LAST_FRIDAY,)
    assert (await store.item(written.item.id)).times == (LAST_FRIDAY,)
    [hit] = await store.search("dog")
    assert hit.item.times == (LAST_FRIDAY,)


async def test_a_raw_turn_has_its_times_too(store: StoreApi) -> None:
    written = await store.add("turn", "My dog was ill last Friday.", kind="RawTurn", timestamp=FRIDAY)

    assert written.item.times == (LAST_FRIDAY,)


async def test_yesterday_is_that_of_the_offset_of_the_timestamp(store: StoreApi) -> None:
    tokyo = datetime(2026, 11, 28, 1, tzinfo=timezone(timedelta(hours=9)))

    item = (await store.add("song", "Ken sang yesterday.", timestamp=tokyo)).item

    assert [one.start for one in item.times] == [date(2026, 11, 27)]


async def test_a_turn_with_its_own_time_counts_from_it(store: StoreApi) -> None:
    source = Source(role="user", name="Ann", content="I sang last Friday.", timestamp=FRIDAY - timedelta(weeks=1))
    draft = MemoryDraft(key="song", value=source.said(), source=source)

    [written] = await store.add_all(draft, timestamp=FRIDAY)

    assert [one.start for one in written.item.times] == [date(2026, 11, 13)]


async def test_a_memory_without_a_time_takes_the_only_one_of_its_only_turn(store: StoreApi) -> None:
    turn = Source(role="user", content="My dog was ill last Friday.", timestamp=FRIDAY)
    many = turn.model_copy(update={"content": "Ill last Friday, well yesterday."})

    alone = await store.add("dog", "The user's dog was ill.", sources=[turn], timestamp=FRIDAY)
    unsure = await store.add("cat", "The user's cat was ill.", sources=[many], timestamp=FRIDAY)

    assert alone.item.times == (LAST_FRIDAY,)
    assert unsure.item.times == ()


async def test_a_memory_without_a_time_has_no_such_field(store: StoreApi) -> None:
    item = (await store.add("dog", "Ann may march in a second.", timestamp=FRIDAY)).item

    assert "times" not in (await store.http.get(f"/v1/items/{item.id}", headers=store.tenant)).json()


async def test_the_same_words_said_of_another_day_are_a_change(store: StoreApi) -> None:
    words = "I have a dentist appointment tomorrow."
    first = await store.add(words, words, timestamp=FRIDAY)
    same_day = await store.add(words, words, timestamp=FRIDAY + timedelta(hours=1))

    later = await store.add(words, words, timestamp=FRIDAY + timedelta(days=60))

    assert (same_day.outcome, same_day.item.id) == ("touched", first.item.id)
    assert (later.outcome, later.item.supersedes) == ("superseded", first.item.id)
    assert [one.start for one in later.item.times] == [date(2027, 1, 27)]
    assert len(await store.history(later.item.id)) == 2


async def test_the_same_words_from_turns_of_other_days_are_one_fact(store: StoreApi) -> None:
    turns = [
        Source(role="user", content="My dog was ill last Friday.", timestamp=FRIDAY + timedelta(weeks=n))
        for n in (0, 1)
    ]

    written = [
        await store.add("dog", "The user has a dog.", sources=[turn], timestamp=turn.timestamp) for turn in turns
    ]

    assert [one.outcome for one in written] == ["inserted", "touched"]


async def test_an_edited_text_is_read_for_times_again(store: StoreApi) -> None:
    item = (await store.add("dog", "Ann's dog was ill last Friday.", timestamp=FRIDAY)).item

    assert (await store.patch(item.id, {"tags": ["pet"]})).times == (LAST_FRIDAY,)
    assert [str(one.start) for one in (await store.patch(item.id, {"memory": "Ill on 3 May 2024."})).times] == [
        "2024-05-03"
    ]
    assert (await store.patch(item.id, {"memory": "Never ill."})).times == ()


async def test_an_import_keeps_the_times_and_reads_those_that_an_older_export_lacks(store: StoreApi) -> None:
    await store.add("dog", "Ann's dog was ill last Friday.", timestamp=FRIDAY)
    [line] = await lines_of(store)
    older = line.model_dump(mode="json")
    del older["item"]["times"]
    moved = line.item.model_copy(update={"user_id": "bob"})

    moved_in = await take(store.http, [line.model_copy(update={"item": moved}).model_dump_json()], tenant="t2")
    assert moved_in.imported == 1, moved_in
    bob = StoreApi(store.http, Namespace(tenant="t2", user_id="bob"))
    assert [hit.item.times for hit in await bob.search("dog")] == [(LAST_FRIDAY,)]

    older["item"] |= {"user_id": "eve", "id": "0f6c0000-0000-4000-8000-000000000001"}
    await take(store.http, [json.dumps(older)], tenant="t2")
    eve = StoreApi(store.http, Namespace(tenant="t2", user_id="eve"))
    assert [hit.item.times for hit in await eve.search("dog")] == [(LAST_FRIDAY,)]


async def test_an_import_refuses_a_time_that_ends_before_it_starts(store: StoreApi) -> None:
    await store.add("dog", "Ann's dog was ill last Friday.", timestamp=FRIDAY)
    [line] = await lines_of(store)
    wrong = line.model_dump(mode="json")
    wrong["item"] |= {"user_id": "bob", "times": [{"text": "then", "start": "2026-11-20", "end": "2026-11-19"}]}

    imported = await take(store.http, [json.dumps(wrong)])

    assert (imported.imported, imported.failed) == (0, 1)
    assert "times" in imported.errors[0].message


async def test_a_question_about_a_week_finds_its_memories_among_many_others(store: StoreApi) -> None:
    others = [MemoryDraft(key=f"plot {at}", value=f"Garden plot {at} was weeded.") for at in range(90)]
    await store.add_all(*others, timestamp=FRIDAY - timedelta(days=60))
    await store.add("roof", "The roof leaked on Tuesday.", timestamp=FRIDAY - timedelta(days=8))
    await store.add("talk", "Ann gives a talk in two weeks.", timestamp=FRIDAY - timedelta(days=8))
    await store.add("boat", "Ann learned to sail.", timestamp=FRIDAY - timedelta(days=8))

    past = await store.found("What did I do last week?", as_of=FRIDAY, top_k=2)
    ahead = await store.found("What do I do next week?", as_of=FRIDAY, top_k=1)
    everything = await store.found("What do I do next week?", as_of=FRIDAY, top_k=100)

    assert set(past) <= {"The roof leaked on Tuesday.", "Ann learned to sail.", "Ann gives a talk in two weeks."}
    assert ahead == ["Ann gives a talk in two weeks."]
    assert len(everything) == 93
