"""Times and names that retrieval finds in a question."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.wire.fields import EARLIEST
from memory_store.items.identity import possible_names, without_names
from memory_store.times.reading import asked_for

ASKED_AT = datetime(2026, 1, 15, 12, tzinfo=UTC)


def days(question: str, asked_at: datetime = ASKED_AT) -> set[tuple[date, date]]:
    return {(one.start, one.end) for one in asked_for(question, asked_at)}


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what did Anna say last May?", (2025, 5, 1), (2025, 5, 31)),
        ("what was it in December", (2025, 12, 1), (2025, 12, 31)),
        ("who came on 7 May 2023?", (2023, 5, 7), (2023, 5, 7)),
        ("who came on May 7th, 2023?", (2023, 5, 7), (2023, 5, 7)),
        ("what happened on 2025-03-31?", (2025, 3, 31), (2025, 3, 31)),
        ("what was yesterday?", (2026, 1, 14), (2026, 1, 14)),
        ("where was she in 2024?", (2024, 1, 1), (2024, 12, 31)),
        ("in January, who was ill?", (2026, 1, 1), (2026, 1, 31)),
        ("what did you tell me two weeks ago?", (2025, 12, 29), (2026, 1, 4)),
        ("what did I do last week?", (2026, 1, 5), (2026, 1, 11)),
        ("what is on next week?", (2026, 1, 19), (2026, 1, 25)),
        ("what is coming up?", (2026, 1, 16), (2026, 2, 15)),
    ],
)
def test_a_time_in_a_question_is_a_span_of_days(
    question: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    assert days(question) == {(date(*start), date(*end))}


def test_a_day_that_may_be_past_or_to_come_is_both() -> None:
    assert days("Who comes on Friday?") == {(date(2026, 1, day), date(2026, 1, day)) for day in (9, 16)}


@pytest.mark.parametrize("question", ["may I come?", "she may know", "what is 30 February 2025?", "on 2025-13-01", ""])
def test_a_question_without_a_time_asks_for_none(question: str) -> None:
    assert days(question) == set()


@given(st.text())
def test_any_question_can_be_read_for_times(question: str) -> None:
    assert all(start <= end for start, end in days(question))


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What will Anna do?", {"what", "anna"}),
        ("what did anna do", {"what", "did", "anna", "do"}),
        ("What did anna do", {"what", "did", "anna", "do"}),
        ("Anna's cat", {"anna", "cat"}),
    ],
)
def test_names_are_sought_among_capitals_where_there_are_some(question: str, names: set[str]) -> None:
    assert set(possible_names(question)) == names


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("What is Anna's cat called?", "What is cat called?"),
        ("Where did Anna and Ben go, Anna?", "Where did and go, ?"),
        ("Anna?", "Anna?"),
        ("Annabel sings", "Annabel sings"),
    ],
)
def test_names_leave_a_question_that_has_other_words(question: str, left: str) -> None:
    assert without_names(question, {"anna", "ben"}) == left


@given(st.text(), st.sets(st.text(min_size=1)))
def test_any_question_can_lose_its_names(question: str, names: set[str]) -> None:
    assert without_names(question, names) or not question.strip()


def test_a_question_that_is_asked_at_the_earliest_moment_can_be_read() -> None:
    assert (date(1, 1, 1), date(1, 12, 31)) in days("999 years ago, last year, yesterday, in 1999", EARLIEST)
