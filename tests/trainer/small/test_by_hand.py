"""The measure on what people wrote by hand: a model that keeps every word stores and answers all, small talk too."""

from collections.abc import Sequence

import pytest

from trainer.small.by_hand import by_hand, holds
from trainer.small.sample import Sample

REFUSED = "general questions refused"


def repeat(samples: Sequence[Sample]) -> list[str]:
    """Keep what was told word by word, answer with all notes, and take each memory for a change of every other."""
    replies = list[str]()
    for number, sample in enumerate(samples):
        shown = " ".join(str(message.content) for message in sample.messages[-2:]).replace("\n", " ")
        replies.append({"write": f"topic {number}: {shown}", "relate": "1: updates 1"}.get(sample.task, shown))
    return replies


def repeat_the_first(samples: Sequence[Sample]) -> list[str]:
    """Keep what was told, and answer with the first note."""
    replies = repeat(samples)
    for number, sample in enumerate(samples):
        notes = str(sample.messages[0].content).splitlines()
        if sample.task == "answer":
            replies[number] = next((line for line in notes if line.startswith("1. ")), "")
    return replies


def test_the_note_that_answers_is_not_always_the_first_of_six() -> None:
    share, *_ = by_hand(repeat_the_first).report()["by hand answered among six"]
    assert 0.65 <= share <= 0.85  # where a search ranks it


@pytest.mark.parametrize(
    ("text", "held"), [("Ten cats.", True), ("often", False), ("tens", True), ("I have 30.", False), ("the 3rd", True)]
)
def test_a_gold_is_the_beginning_of_a_word(text: str, held: bool) -> None:
    gold = "3" if any(letter.isdigit() for letter in text) else "ten"
    assert holds(text, gold) is held


def forget(samples: Sequence[Sample]) -> list[str]:
    return ["none" if sample.task == "write" else "I don't know." for sample in samples]


def test_a_model_that_keeps_every_word_stores_and_answers_all() -> None:
    figures = by_hand(repeat).report()
    assert figures.pop(REFUSED)[0] == 0
    assert {name: (share, of) for name, (share, _, _, of) in figures.items()} == {
        "everyday stored": (1, 40),
        "everyday answered": (1, 40),
        "everyday answered among six": (1, 40),
        "by hand stored": (1, 100),
        "by hand answered": (1, 100),
        "by hand answered among six": (1, 100),
        "by hand small talk stored": (1, 175),
        "by hand others kept": (0, 120),
        "by hand updates recognised": (1, 60),
        "by hand updates answered": (1, 60),
    }


def test_a_model_that_keeps_nothing_stores_and_answers_nothing_and_refuses_all() -> None:
    figures = by_hand(forget).report()
    assert figures.pop(REFUSED)[0] == 1
    assert {share for share, *_ in figures.values()} == {0}


def test_a_bound_takes_the_first_of_each_file_alone() -> None:
    figures = by_hand(repeat, most=1).report()
    assert len(figures) == 10  # one update has no others beside it
    assert {(share, of) for name, (share, _, _, of) in figures.items() if name != REFUSED} == {(1, 1)}
