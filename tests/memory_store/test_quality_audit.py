"""What an audit finds in a namespace's live memories, by rule."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from memloop.wire.quality import AuditFinding, QualityAudit
from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import app_over, serving
from tests.memory_store.set_clock import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


async def audited(store: StoreApi, **fields: object) -> QualityAudit:
    body = {"namespace": store.namespace.model_dump(), **fields}
    response = await store.http.post("/v1/items/audit", json=body)
    assert response.status_code == 200, response.text
    return QualityAudit.model_validate_json(response.content)


def by_name(audit: QualityAudit) -> Mapping[str, AuditFinding]:
    return {finding.suspicion: finding for finding in audit.findings}


def rules(audit: QualityAudit) -> dict[str, int]:
    return {rule: count for finding in audit.findings for rule, count in finding.by_rule.items()}


async def test_an_empty_namespace_has_nothing_to_suspect(store: StoreApi) -> None:
    audit = await audited(store)

    assert (audit.memories, audit.raw_turns, audit.complete, audit.feedback) == (0, 0, True, {})
    assert [(one.suspicion, one.memories, one.share) for one in audit.findings] == [
        (name, 0, 0.0) for name in ("duplicate", "contradiction", "stale", "junk")
    ]


async def test_sound_memories_are_not_suspected(store: StoreApi) -> None:
    await store.add("City", "Alice lives in Rome")
    await store.add("Pet", "Alice has a grey cat")
    await store.add("Job", "Alice repairs violins for the opera")

    audit = await audited(store)

    assert audit.memories == 3
    assert rules(audit) == {}


async def test_all_but_one_of_the_same_texts_are_duplicates(store: StoreApi) -> None:
    for key in ("City", "Home", "Town"):
        await store.add(key, "Alice lives in Rome")
    await store.add("Pet", "Alice has a grey cat")

    duplicates = by_name(await audited(store))["duplicate"]

    assert (duplicates.memories, duplicates.share, duplicates.by_rule) == (2, 0.5, {"same text": 2})
    [example] = duplicates.examples
    assert (example.rule, example.count) == ("same text", 3)
    assert {one.key for one in example.memories} == {"City", "Home", "Town"}


async def test_function_words_and_endings_do_not_hide_a_duplicate(store: StoreApi) -> None:
    await store.add("City", "Alice is living in the old town")
    await store.add("Home", "Alice lives in an old town!")

    assert rules(await audited(store)) == {"same words": 1}


async def test_the_order_of_words_counts(store: StoreApi) -> None:
    await store.add("One", "Tom likes Anna")
    await store.add("Two", "Anna likes Tom")

    assert rules(await audited(store)) == {}


async def test_two_live_values_of_one_key_contradict(store: StoreApi) -> None:
    await store.add("Home city", "Rome by the river", kind="LongTermMemory")
    await store.add("The home-city", "Oslo at the fjord", kind="UserMemory")

    found = by_name(await audited(store))["contradiction"]

    assert (found.memories, found.by_rule) == (2, {"one key, two values": 2})


async def test_a_number_or_a_negation_makes_two_sentences_contradict(store: StoreApi) -> None:
    await store.add("Cats", "Tom keeps 2 cats at home")
    await store.add("Cats of Tom", "Tom keeps 3 cats at home")
    await store.add("Diet", "Bob eats fish on Fridays")
    await store.add("Food", "Bob never eats fish on Fridays")

    assert rules(await audited(store)) == {"other number": 2, "other negation": 2}


async def test_a_list_of_numbered_events_contradicts_nothing(store: StoreApi) -> None:
    for number in range(5):
        await store.add(f"Trip {number}", f"Alice took the tram number {number}")

    assert rules(await audited(store)) == {}


async def test_a_superseded_version_is_not_examined(store: StoreApi) -> None:
    await store.add("City", "Rome by the river", timestamp=day(1))
    await store.add("City", "Oslo at the fjord", timestamp=day(2))

    audit = await audited(store)

    assert audit.memories == 1
    assert rules(audit) == {}


async def test_a_relative_time_goes_stale_after_a_month(store: StoreApi, clock: SetClock) -> None:
    await store.add("Plan", "Alice meets the dentist tomorrow")
    assert rules(await audited(store)) == {}

    clock.pass_days(31)

    assert rules(await audited(store)) == {"relative time": 1}


async def test_facts_not_stated_again_are_stale_only_for_whom_asks(store: StoreApi, clock: SetClock) -> None:
    await store.add("City", "Alice lives in Rome")
    clock.pass_days(200)

    assert rules(await audited(store)) == {}
    assert rules(await audited(store, stale_after_days=180)) == {"not stated again": 1}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("...", "no words"),
        ("Thank you!", "pleasantry"),
        ("Where does Alice live?", "question"),
        ("very very very very very very good cake", "repetition"),
        ("{[(<=>)]}::::{[(<=>)]}::::a", "symbols"),
    ],
)
async def test_junk_is_found_by_rule(store: StoreApi, text: str, rule: str) -> None:
    await store.add("Note", text)

    found = by_name(await audited(store))["junk"]

    assert (found.by_rule, found.share) == ({rule: 1}, 1.0)
    assert found.examples[0].because


async def test_verdicts_of_clients_count(store: StoreApi) -> None:
    wrong = (await store.add("City", "Alice lives in Rome")).item
    old = (await store.add("Job", "Alice sells clarinets at the harbour")).item
    good = (await store.add("Pet", "Alice has a grey cat")).item
    for item, verdict in ((wrong, "wrong"), (old, "outdated"), (good, "helpful")):
        await store.judge(item.id, verdict)

    audit = await audited(store)

    assert audit.feedback == {"wrong": 1, "outdated": 1, "helpful": 1}
    assert rules(audit) == {"called wrong": 1, "called outdated": 1}


async def test_raw_turns_are_only_counted(store: StoreApi) -> None:
    await store.add("t1", "ok", kind="RawTurn")

    audit = await audited(store)

    assert (audit.memories, audit.raw_turns) == (0, 1)


async def test_another_users_memories_are_not_examined(store: StoreApi) -> None:
    await store.add("City", "Alice lives in Rome")

    assert (await audited(store.of(user_id="bob"))).memories == 0
    assert (await audited(store.of(tenant="other"))).memories == 0


async def test_a_text_beyond_the_bound_is_compared_as_a_whole_only(store: StoreApi) -> None:
    long = "clarinet harbour violin " * 200
    await store.add("One", f"{long} 1 end")
    await store.add("Two", f"{long} 2 end")
    await store.add("Three", f"{long} 2 end")

    assert rules(await audited(store)) == {"same text": 1}


async def test_no_more_examples_than_asked_for(store: StoreApi) -> None:
    for number in range(4):
        await store.add(f"Note {number}", "?" * (number + 1))

    junk = by_name(await audited(store, examples=2))["junk"]

    assert (junk.memories, len(junk.examples)) == (4, 2)


async def test_an_audit_examines_no_more_than_its_bound(settings: Settings) -> None:
    app = app_over(QdrantEdge(settings.data_dir, flush_s=60), settings)
    app.state.audits = replace(app.state.audits, most=3)
    async with serving(app) as http:
        for number in range(5):
            await StoreApi(http).add(f"Note {number}", f"Alice saw boat {number}")
        audit = await audited(StoreApi(http))

    assert (audit.memories, audit.complete) == (3, False)


@pytest.mark.parametrize("body", [{}, {"examples": 51}, {"stale_after_days": 0}])
async def test_other_bodies_are_refused(store: StoreApi, body: dict[str, object]) -> None:
    namespace = {"namespace": store.namespace.model_dump()} if body else {}
    response = await store.http.post("/v1/items/audit", json={**namespace, **body})

    assert response.status_code == 422
