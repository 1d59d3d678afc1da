"""Times that a text names, without a model."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.dates.corpus import phrases, undated
from memloop.wire.fields import EARLIEST, LATEST
from memloop.wire.memory import MOST_TIMES
from memory_store.times.reading import times_in, times_of

FRIDAY = datetime(2026, 11, 27, 15, tzinfo=UTC)


def days_in(text: str, said_at: datetime = FRIDAY) -> list[tuple[date, date]]:
    return [(one.start, one.end) for one in times_in(text, said_at)]


def test_nine_of_ten_made_up_phrases_are_read_right() -> None:
    cases = list(phrases())

    assert len(cases) == 300
    assert sum(case.is_right(days_in(case.text, case.said_at)) for case in cases) >= 270


def test_at_most_two_of_a_hundred_sentences_without_a_time_have_one() -> None:
    assert sum(bool(days_in(text)) for text in undated()) <= 20


def test_a_time_keeps_the_words_in_which_it_was_said() -> None:
    [found] = times_in("My dog  turned five the day\nbefore yesterday.", FRIDAY)

    assert (found.text, found.start) == ("the day before yesterday", date(2026, 11, 25))


def test_several_times_come_in_the_order_of_the_text() -> None:
    assert [one.text for one in times_in("Tomorrow we rest; last week we dug; on Monday we sow.", FRIDAY)] == [
        "Tomorrow",
        "last week",
        "on Monday",
    ]


def test_yesterday_is_that_of_the_speakers_zone() -> None:
    tokyo = datetime(2026, 11, 28, 1, tzinfo=timezone(timedelta(hours=9)))

    assert tokyo < datetime(2026, 11, 27, 17, tzinfo=UTC)
    assert days_in("I sang yesterday.", tokyo) == [(date(2026, 11, 27), date(2026, 11, 27))]
    assert days_in("I sang yesterday.", tokyo.astimezone(UTC)) == [(date(2026, 11, 26), date(2026, 11, 26))]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Gestern war ich mit meiner Schwester im Kino und das war nicht so gut.", date(2026, 11, 26)),
        ("Hier, j'ai vu le médecin et je suis allé à la mer avec mon fils.", date(2026, 11, 26)),
        ("Compré un coche con mi hermano el 3 de mayo de 2025 y no me gusta.", date(2025, 5, 3)),
        ("Вчера мы купили собаку, и она уже спит.", date(2026, 11, 26)),
    ],
)
def test_a_day_in_another_language_is_read(text: str, day: date) -> None:
    assert (day, day) in days_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Nächsten Freitag fliege ich mit meiner Frau nach Oslo.",
        "Vendredi prochain je vais chez le médecin avec ma fille.",
        "El viernes que viene voy al médico con mi hija.",
        "В пятницу мы едем к бабушке.",
    ],
)
def test_a_weekday_in_another_language_is_no_sure_day(text: str) -> None:
    wednesday = datetime(2026, 11, 25, 12, tzinfo=UTC)

    assert times_of(text, wednesday, ()) == ()


def test_a_sure_day_in_another_language_is_that_of_the_statement() -> None:
    text = "Gestern war ich mit meiner Schwester im Kino und das war nicht so gut."

    assert [one.start for one in times_of(text, FRIDAY, ())] == [date(2026, 11, 26)]


def test_a_diary_gives_its_first_times_only() -> None:
    assert len(days_in(". ".join(f"On {day} May 2024 it rained" for day in range(1, 30)))) == MOST_TIMES


@pytest.mark.parametrize("moment", [EARLIEST, LATEST])
def test_times_beyond_the_calendar_are_left_out(moment: datetime) -> None:
    text = (
        "999 years ago, in 999 years, last year, next weekend, two weeks ago, on 29 February, since Monday, in the 90s"
    )

    assert all(start <= end for start, end in days_in(text, moment))


_LIKE_TIMES = """
    the on in last next this from to until since 1 31 31st 29 february may monday weekend week year 2024 9999 12/31/2024
    2024-02-30 half a few ago of before and summer easter 90s gestern und der вчера . - '
"""
_WORDS = st.sampled_from(_LIKE_TIMES.split())
_MOMENTS = st.datetimes(EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None))


@given(st.one_of(st.text(), st.lists(_WORDS, max_size=60).map(" ".join)), _MOMENTS)
def test_any_text_can_be_read_for_times(text: str, moment: datetime) -> None:
    found = times_in(text, moment.replace(tzinfo=UTC))

    assert len(found) <= MOST_TIMES
    assert all(one.start <= one.end and one.text in " ".join(text.split()) for one in found)
