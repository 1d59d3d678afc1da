"""Which part of a long last message is the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.chat.oversized import question_in
from memloop.chunking import EstimatingSplitter

SPLITTER = EstimatingSplitter()
LINES = "\n".join(f"{number};{number * 7}" for number in range(300))


@given(st.lists(st.text(max_size=40), max_size=30), st.sampled_from(["\n\n", "\n", " "]), st.integers(16, 200))
def test_nothing_of_a_text_is_lost_and_its_sides_are_short(pieces: list[str], mark: str, most: int) -> None:
    text = mark.join(pieces)
    first, between, last = question_in(text, SPLITTER, most_tokens=most)
    assert SPLITTER.count(first) <= most
    assert SPLITTER.count(last) <= most // 2 or not between
    assert (first + between + last == text) or text.endswith(last)
    assert not between or first + between in (text[: len(first + between)], text)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (f"Sum up.\n\n{LINES}", "Sum up."),
        (f"{LINES}\n\nSum up.", "Sum up."),
        (f"{LINES}\nSum up.", "Sum up."),
        (f"  \n\nSum up:\n\n{LINES}\n\nIn French.\n", "In French."),
    ],
    ids=["before", "after", "on the last line", "on both sides"],
)
def test_question_is_found_on_either_side(text: str, asked: str) -> None:
    first, between, last = question_in(text, SPLITTER, most_tokens=64)
    assert asked in f"{first} {last}"
    assert LINES[100:-100] in between


def test_text_without_any_paragraph_keeps_its_end() -> None:
    _, between, last = question_in("word " * 2000 + "What was that?", SPLITTER, most_tokens=64)
    assert last.endswith("What was that?")
    assert between.startswith("word word")


def test_short_text_is_all_question() -> None:
    assert question_in("Where?\n\nWhen?", SPLITTER, most_tokens=64) == ("Where?\n\nWhen?", "", "")
