"""The boosts of retrieval one by one, as pure functions, and together through a search."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.wire.errors import DependencyError
from memloop.wire.limits import EARLIEST
from memloop.wire.memory import MemoryDraft
from memory_store.retrieval.boosts import boost_neighbours, neighbours_of, wanted_neighbours
from memory_store.retrieval.candidates import Candidate, fuse
from memory_store.retrieval.diversity import diversified
from memory_store.retrieval.rerank import CrossEncoderScorer, Reranker, RerankerMissing
from memory_store.retrieval.time_windows import Window, windows
from memory_store.retrieval.tuning import PLAIN
from memory_store.vectors.port import Ranked
from tests.memory_store.api import StoreApi

ASKED_AT = datetime(2026, 1, 15, 12, tzinfo=UTC)


def candidate(
    key: str, *, text: str = "t", score: float = 0.0, said_at: datetime = ASKED_AT, by: str = ""
) -> Candidate:
    payload: dict[str, Any] = {
        "key": key,
        "memory": text,
        "memory_type": "RawTurn" if by else "LongTermMemory",
        "tags": [by] if by else [],
        "valid_from": said_at.isoformat(),
    }
    return Candidate(key, payload, shares={"dense": score} if score else {})


def test_the_first_of_both_rankings_has_score_one() -> None:
    dense, sparse = [Ranked("a", 0.9), Ranked("b", 0.8)], [Ranked("a", 7.0), Ranked("c", 3.0)]

    scores = {one.id: one.score for one in fuse(dense, sparse, PLAIN)}

    assert scores == pytest.approx({"a": 1.0, "b": 1 / 3, "c": 1 / 3})


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what did Anna say last May?", (2025, 5, 1), (2025, 6, 1)),
        ("what was it in December", (2025, 12, 1), (2026, 1, 1)),
        ("who came on 7 May 2023?", (2023, 5, 7), (2023, 5, 8)),
        ("who came on May 7th, 2023?", (2023, 5, 7), (2023, 5, 8)),
        ("what happened on 2025-03-31?", (2025, 3, 31), (2025, 4, 1)),
        ("what was yesterday?", (2026, 1, 14), (2026, 1, 15)),
        ("where was she in 2024?", (2024, 1, 1), (2025, 1, 1)),
        ("in January, who was ill?", (2026, 1, 1), (2026, 2, 1)),
    ],
)
def test_a_time_in_a_question_is_a_window(
    question: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    assert windows(question, asked_at=ASKED_AT) == [Window(datetime(*start, tzinfo=UTC), datetime(*end, tzinfo=UTC))]


def test_some_weeks_ago_is_a_window_around_that_day() -> None:
    [window] = windows("what did you tell me two weeks ago?", asked_at=ASKED_AT)

    assert window.holds(datetime(2026, 1, 1, 12, tzinfo=UTC))
    assert not window.holds(datetime(2026, 1, 10, tzinfo=UTC))


@pytest.mark.parametrize("question", ["may I come?", "she may know", "what is 30 February 2025?", "on 2025-13-01", ""])
def test_what_is_no_time_is_no_window(question: str) -> None:
    assert windows(question, asked_at=ASKED_AT) == []


@given(st.text())
def test_any_question_can_be_read_for_times(question: str) -> None:
    assert all(window.start < window.end for window in windows(question, asked_at=ASKED_AT))


def test_the_turn_beside_a_good_one_gets_a_part_of_its_score() -> None:
    turns = [candidate("e:4", score=1.0, by="a"), candidate("e:5", by="b"), candidate("f:5", by="b")]

    boost_neighbours(turns, 0.5)

    assert [one.score for one in turns] == [1.0, 0.5, 0.0]


def test_neighbours_are_of_the_same_write_and_not_before_its_first_turn() -> None:
    assert neighbours_of("evt_1:0:7") == ("evt_1:0:6", "evt_1:0:8")
    assert neighbours_of("evt_1:0") == ("evt_1:1",)
    assert neighbours_of("favourite colour") == ()
    assert wanted_neighbours([candidate("e:0", score=1.0, by="a"), candidate("e:1", by="a")]) == ("e:2",)


def test_a_copy_of_a_better_hit_gives_way_to_something_else() -> None:
    hits = [candidate("a", text="red boat", score=1.0), candidate("b", text="red boat", score=0.9)]
    hits.append(candidate("c", text="blue kite", score=0.8))

    assert [one.id for one in diversified(hits, 0.2)] == ["a", "c", "b"]


class Backwards:
    """Likes the last text best."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        del question
        return [place / len(texts) for place in range(len(texts))]


async def test_a_reranker_has_the_last_word_on_the_best_candidates_only() -> None:
    reranker = Reranker(Backwards, depth=2)
    await reranker.start()
    hits = [candidate("a", score=0.9), candidate("b", score=0.8), candidate("c", score=0.7)]

    found = await reranker.reordered("q", hits)

    assert [one.id for one in found] == ["b", "a", "c"]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert found[0].found["fused_score"] == 0.8
    reranker.close()


async def test_a_reranker_that_fails_is_a_dependency_that_fails() -> None:
    class Broken:
        def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
            raise ValueError(f"{question}{texts}")

    reranker = Reranker(Broken)
    await reranker.start()
    with pytest.raises(DependencyError, match="reranking model failed"):
        await reranker.reordered("q", [candidate("a")])
    reranker.close()


def test_a_reranking_model_that_is_not_there_is_told_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RerankerMissing, match="MEMLOOP_RERANK_MODEL"):
        CrossEncoderScorer("/no/such/model")


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

    hits = await store.search("what is the puppy called", include_raw=True, top_k=4, explain=True)

    answer = next(hit for hit in hits if hit.item.memory == "Biscuit!")
    assert answer.score_breakdown["neighbour"] > 0
    assert answer.score == pytest.approx(
        sum(share for name, share in answer.score_breakdown.items() if not name.endswith(("_rank", "_score")))
    )


async def test_what_was_said_in_the_month_that_is_asked_for_comes_first(http: httpx.AsyncClient) -> None:
    store = StoreApi(http)
    for month, thing in ((3, "a bowl"), (5, "a vase"), (7, "a mask")):
        said_at = datetime(2025, month, 3, tzinfo=UTC)
        await store.add(f"Pottery {month}", f"Anna made {thing} at pottery", timestamp=said_at)

    [first, *_] = await store.search("what did Anna make at pottery in May 2025", explain=True)

    assert first.item.memory == "Anna made a vase at pottery"
    assert first.score_breakdown["date"] > 0


def test_a_question_that_is_asked_at_the_earliest_moment_can_be_read() -> None:
    [ago, *_] = windows("999 years ago, last year, yesterday, in 1999", asked_at=EARLIEST)

    assert ago.start.year == 1
