"""Times and names that retrieval finds in a question."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.wire.limits import EARLIEST
from memory_store.retrieval.names import possible_names, without_names
from memory_store.retrieval.time_windows import Window, windows

ASKED_AT = datetime(2026, 1, 15, 12, tzinfo=UTC)


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
    [ago, *_] = windows("999 years ago, last year, yesterday, in 1999", asked_at=EARLIEST)

    assert ago.start.year == 1
