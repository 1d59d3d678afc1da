"""The boosts of retrieval one by one, as pure functions, and together through a search."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.wire.errors import DependencyError, Timeout
from memloop.wire.memory import MemoryDraft, MemoryType, Source
from memory_store.items.identity import PLACES_PER_SECOND, place_of, speaker_of
from memory_store.retrieval.relevance import Candidate, Relevance, Tuning, around, boost, contexts
from memory_store.retrieval.rerank import CrossEncoderScorer, Reranker, RerankerMissing, ThreadScorer
from memory_store.retrieval.search import ordered
from memory_store.times.reading import asked_for
from memory_store.vectors.port import Placed, Ranked
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import StoreApi

ASKED_AT = datetime(2026, 1, 15, 12, tzinfo=UTC)


def candidate(
    key: str,
    *,
    text: str = "t",
    score: float = 0.0,
    said_at: datetime = ASKED_AT,
    place: int | None = None,
    by: str = "",
) -> Candidate:
    payload: dict[str, Any] = {"memory": text, "valid_from": said_at.isoformat(), "speaker": by.split()}
    if place is not None:
        payload["place"] = place
    return Candidate(key, payload, shares={"dense": score} if score else {})


def boosted(one: Candidate, question: str, *named: str) -> dict[str, float]:
    """The shares that the boosts add."""
    boost([one], Tuning(), named=named, times=asked_for(question, ASKED_AT), asked_at=ASKED_AT)
    return one.shares


def test_relevance_adds_the_cosine_to_a_part_of_the_words() -> None:
    dense, sparse = [Ranked("a", 0.9), Ranked("b", 0.4)], [Ranked("a", 7.0), Ranked("c", 3.0)]

    relevance = Relevance(dense, sparse, Tuning(sparse=0.1))

    assert relevance.shares("a") == pytest.approx({"dense": 0.9, "sparse": 0.7})
    assert relevance.shares("b") == pytest.approx({"dense": 0.4})
    assert relevance.shares("c") == pytest.approx({"dense": 0.4, "sparse": 0.3})
    assert relevance.best(3, raised={}) == ["a", "c", "b"]
    assert relevance.best(2, raised={"d": 2.0}) == ["d", "a"]


def test_places_of_a_ranking_that_holds_everything_need_no_query() -> None:
    dense = [Ranked("a", 0.9, 40), Ranked("b", 0.5, 10), Ranked("c", 0.4, 20), Ranked("d", 0.3, 30)]

    found = Relevance(dense, [], Tuning(), limit=4).placed([(10, 20), (35, 90)])

    assert found == [Placed("b", 10), Placed("c", 20), Placed("a", 40)]


@pytest.mark.parametrize(
    ("dense", "limit"),
    [([Ranked("a", 0.9, 1), Ranked("b", 0.5, 2)], 1), ([Ranked("a", 0.9, 1), Ranked("b", 0.5)], 2), ([], 2)],
    ids=["cut short", "a place unknown", "without meanings"],
)
def test_places_that_a_ranking_lacks_are_looked_up(dense: list[Ranked], limit: int) -> None:
    assert Relevance(dense, [], Tuning(), limit=limit).placed([(0, 9)]) is None


def test_a_ranking_beyond_its_limit_does_not_count() -> None:
    relevance = Relevance([Ranked("a", 0.9), Ranked("b", 0.5), Ranked("c", 0.1)], [], Tuning(), limit=2)

    assert relevance.best(9, raised={}) == ["a", "b"]
    assert relevance.above_floor["a"] == pytest.approx(0.4)


@pytest.mark.parametrize("order", ["abcd", "cbad", "bcad"])
def test_equal_scores_share_a_place_in_a_ranking(order: str) -> None:
    scores = {"a": 3.0, "b": 3.0, "c": 3.0 + 1e-9, "d": 1.0}
    relevance = Relevance([], [Ranked(one, scores[one]) for one in order], Tuning())

    places = {one: relevance.found(one)["sparse_rank"] for one in "abcd"}
    assert places == {"a": 1, "b": 1, "c": 1, "d": 4}
    assert relevance.best(3, raised={}) == ["a", "b", "c"]


def turns_at(*seconds: int) -> list[Placed]:
    return [Placed(str(number), second * PLACES_PER_SECOND) for number, second in enumerate(seconds)]


def test_turns_beside_a_good_one_get_parts_of_its_relevance() -> None:
    found = contexts(turns_at(0, 1, 2, 3, 4, 90_000), {"1": 1.0}, Tuning(beside=0.5, near=0.25, session=0.1))

    assert [found.neighbour[str(number)] for number in range(6)] == [0.5, 0.0, 0.5, 0.25, 0.0, 0.0]
    assert [found.session[str(number)] for number in range(6)] == [0.1, 0.1, 0.1, 0.1, 0.1, 0.0]
    assert [found.total[str(number)] for number in range(6)] == [0.6, 0.1, 0.6, 0.35, 0.1, 0.0]
    assert found.shares("1") == {"session": 0.1}


@given(
    st.lists(st.tuples(st.integers(0, 20_000), st.floats(0, 2)), max_size=40),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_contexts_are_those_of_the_definition(
    turns: list[tuple[int, float]], beside: float, near: float, session: float
) -> None:
    seconds = sorted(second for second, _ in turns)
    values = [value for _, value in turns]
    numbers = [0]
    for before, after in pairwise(seconds):
        numbers.append(numbers[-1] + (after - before > 1800))

    relevance = {str(number): value for number, value in enumerate(values)}

    found = contexts(turns_at(*seconds), relevance, Tuning(beside=beside, near=near, session=session))

    for at, _ in enumerate(values):
        others = [(abs(at - other), values[other]) for other, _ in enumerate(values) if numbers[other] == numbers[at]]
        by_turns = sum({1: beside, 2: near}.get(distance, 0.0) * value for distance, value in others)
        assert found.neighbour[str(at)] == pytest.approx(by_turns)
        assert found.session[str(at)] == pytest.approx(session * max(value for _, value in others))


def test_turns_are_looked_up_around_candidates_with_a_place() -> None:
    hour = 3600 * PLACES_PER_SECOND

    assert around([candidate("a")]) == []
    near = around([candidate("a", place=10 * hour), candidate("b", place=10 * hour + 5), candidate("c", place=0)])
    assert near == [(-hour // 2, hour // 2), (10 * hour - hour // 2, 10 * hour + 5 + hour // 2)]


@given(st.lists(st.tuples(st.datetimes(), st.datetimes()), min_size=2, max_size=2))
def test_places_follow_seconds_of_event_time(moments: list[tuple[datetime, datetime]]) -> None:
    (one, arrived), (other, arrived_too) = (tuple(at.replace(tzinfo=UTC) for at in pair) for pair in moments)

    first, second = place_of(one, arrived), place_of(other, arrived_too)

    assert -(2**63) <= first < 2**63
    if 1900 < one.year < 2100 and 1900 < other.year < 2100 and other - one >= timedelta(seconds=1):
        assert first < second


def test_places_of_one_moment_follow_arrival() -> None:
    arrived = datetime(2026, 1, 5, 12, tzinfo=UTC)

    places = [place_of(ASKED_AT, arrived + timedelta(microseconds=step)) for step in (0, 1, 2, 5_000_000)]

    assert places == sorted(set(places))


@pytest.mark.parametrize(
    ("memory", "kind", "tags", "speaker"),
    [
        ("Anna: I moved", "LongTermMemory", (), ("anna",)),
        ("Dr. Ben O'Neil: hello", "LongTermMemory", (), ("dr", "ben", "neil")),
        ("I moved", "RawTurn", ("Anna",), ("anna",)),
        ("Anna: I moved", "RawTurn", ("user",), ("anna",)),
        ("user: I moved", "LongTermMemory", (), ()),
        ("Assistant: I moved", "LongTermMemory", (), ()),
        ("http://example.org", "LongTermMemory", (), ()),
        ("She was told this long ago: no", "LongTermMemory", (), ()),
        ("I moved", "LongTermMemory", ("Anna",), ()),
        ("", "LongTermMemory", (), ()),
    ],
)
def test_the_speaker_is_the_name_before_the_words(
    memory: str, kind: MemoryType, tags: tuple[str, ...], speaker: tuple[str, ...]
) -> None:
    assert speaker_of(memory, kind, tags) == speaker


@pytest.mark.parametrize(
    ("memory", "name", "speaker"),
    [
        ("anna_92: I moved", "anna_92", ("anna",)),
        ("maria de la cruz santos: I moved", "maria de la cruz santos", ("maria", "de", "la", "cruz", "santos")),
        ("anna_92 moved", "anna_92", ()),
    ],
    ids=["handle", "long name", "not the turn itself"],
)
def test_a_memory_that_repeats_a_turn_has_its_speaker(memory: str, name: str, speaker: tuple[str, ...]) -> None:
    turn = Source(role="user", content="I moved", name=name)
    assert speaker_of(memory, "LongTermMemory", (), (turn,)) == speaker
    assert speaker_of(memory, "LongTermMemory", (), (turn, turn)) == ()


def test_boosts_are_for_the_speaker_the_date_and_answers() -> None:
    turn = candidate("a", text="In Rome.", by="anna", said_at=datetime(2025, 12, 3, tzinfo=UTC))

    assert boosted(turn, "Where was Anna in December?", "anna") == {"speaker": 0.25, "date": 0.2}
    assert boosted(candidate("b", text="Where? ", by="ben"), "Where was Anna?", "anna") == {"asking": -0.1}


def test_a_memory_that_names_the_asked_time_is_boosted_whenever_it_was_said() -> None:
    def said(*times: tuple[str, str]) -> Candidate:
        one = candidate("a", said_at=datetime(2024, 12, 20, tzinfo=UTC))
        named: list[dict[str, str]] = [{"text": "then", "start": start, "end": end} for start, end in times]
        return Candidate(one.id, {**one.payload, "times": named})  # type: ignore[dict-item]

    asked = "What is coming up next week?"
    assert boosted(said(("2026-01-20", "2026-01-20")), asked) == {"date": 0.2}
    assert boosted(said(("2020-01-01", "2020-01-01"), ("2026-01-25", "2026-02-01")), asked) == {"date": 0.2}
    assert boosted(said(("2026-01-12", "2026-01-18")), asked) == {}
    assert boosted(said(("2019-01-01", "2026-12-31")), asked) == {}
    assert boosted(said(("2025-01-01", "2025-12-31")), "What was in 2025?") == {"date": 0.2}


class Backwards:
    """Likes the last text best."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        del question
        return [place / len(texts) for place in range(len(texts))]


async def test_a_reranker_fuses_its_order_with_the_own_one_for_the_best_candidates_only() -> None:
    reranker = Reranker(ThreadScorer(Backwards), depth=3)
    await reranker.start()
    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}
    hits = [candidate(key, score=score) for key, score in scores.items()]

    found = await reranker.reordered("q", hits)

    assert [one.id for one in found] == ["a", "c", "b", "d"]
    assert [one.score for one in found] == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert (found[1].found["fused_score"], found[1].found["rerank_score"]) == (0.7, pytest.approx(2 / 3))
    await reranker.close()


async def test_a_reranker_that_fails_is_a_dependency_that_fails() -> None:
    class Broken:
        def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
            raise ValueError(f"{question}{texts}")

    reranker = Reranker(ThreadScorer(Broken))
    await reranker.start()
    with pytest.raises(DependencyError, match="reranking model failed"):
        await reranker.reordered("q", [candidate("a")])
    await reranker.close()


async def test_a_reranker_that_takes_too_long_is_not_waited_for() -> None:
    class Slow:
        def __init__(self) -> None:
            self.go_on = threading.Event()

        def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
            del question
            self.go_on.wait(PATIENCE_S)
            return [0.0 for _ in texts]

    slow = Slow()
    reranker = Reranker(ThreadScorer(lambda: slow), budget_s=0.01)
    await reranker.start()
    for _ in range(3):
        with pytest.raises(Timeout):
            await reranker.reordered("q", [candidate("a")])
    slow.go_on.set()
    await reranker.close()


def test_a_missing_reranking_model_is_reported_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RerankerMissing, match="MEMLOOP_RERANK_MODEL"):
        CrossEncoderScorer("/no/such/model")


def test_equal_scores_fall_by_time_then_by_id() -> None:
    old, new = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC)
    alike = [
        candidate("b", score=0.5, said_at=new),
        candidate("c", score=0.5 + 1e-9, said_at=old),
        candidate("a", score=0.5 - 1e-9, said_at=new),
        candidate("d", score=0.6, said_at=old),
    ]

    assert [one.id for one in ordered(alike)] == ["d", "a", "b", "c"]


async def test_an_answer_is_found_by_the_question_in_the_turn_before_it(store: StoreApi) -> None:
    turns = [
        "How is work?",
        "Fine.",
        "What did you call the puppy?",
        "Biscuit!",
        "Lovely.",
        *(f"Well {n}" for n in range(9)),
    ]
    drafts = [
        MemoryDraft(key=f"evt:{at}", value=text, memory_type="RawTurn", tags=("Anna",)) for at, text in enumerate(turns)
    ]
    await store.add_all(*drafts)

    hits = await store.search("what did they call the puppy", include_raw=True, top_k=4, explain=True)

    answer = next(hit for hit in hits if hit.item.memory == "Biscuit!")
    assert answer.score_breakdown["neighbour"] > 0
    assert answer.score == pytest.approx(
        sum(share for name, share in answer.score_breakdown.items() if not name.endswith(("_rank", "_score")))
    )


async def test_the_turns_of_one_write_keep_their_order(store: StoreApi) -> None:
    drafts = [MemoryDraft(key=f"turn {at}", value=f"value {at}") for at in range(20)]

    items = [one.item for one in await store.add_all(*drafts)]

    assert len({item.valid_from for item in items}) == 1
    assert [place_of(item.valid_from, item.created_at) for item in items] == sorted(
        {place_of(item.valid_from, item.created_at) for item in items}
    )


async def test_the_speaker_whom_the_question_names_comes_first(store: StoreApi) -> None:
    for name in ("Anna", "Ben", "Carla"):
        await store.add(f"{name}: My cat", f"{name}: My cat is grey")

    for name in ("Anna", "Ben", "Carla"):
        first, *others = await store.search(f"What colour is {name}'s cat?", explain=True)

        assert first.item.memory == f"{name}: My cat is grey"
        assert first.score_breakdown["speaker"] > 0
        assert all("speaker" not in one.score_breakdown for one in others)


async def test_turns_of_the_month_in_question_come_first(http: httpx.AsyncClient) -> None:
    store = StoreApi(http)
    for month, thing in ((3, "a bowl"), (5, "a vase"), (7, "a mask")):
        said_at = datetime(2025, month, 3, tzinfo=UTC)
        await store.add(f"Pottery {month}", f"Anna made {thing} at pottery", timestamp=said_at)

    [first, *_] = await store.search("what did Anna make at pottery in May 2025", explain=True)

    assert first.item.memory == "Anna made a vase at pottery"
    assert first.score_breakdown["date"] > 0
