"""Statements typed by hand for training: their notes hold what is asked for, and no measure knows them."""

import json
from pathlib import Path
from random import Random

import pytest

import trainer.small
from trainer.small.changes import changes, draw_asked, draw_changed, draw_told
from trainer.small.kinds import English
from trainer.small.persons import told_to_user
from trainer.small.relating import UNKNOWN

TRAINED = English("train", kinds_of=("train", "reward"))
BY_HAND = Path(trainer.small.__file__).parent / "english" / "by_hand"


def test_a_later_note_alone_holds_what_a_question_asks_for() -> None:
    assert len(changes()) >= 300
    for each in changes():
        assert each.gold in each.then_note
        assert each.gold not in each.first_note
        assert len(each.ask) == 2


def test_no_statement_of_a_measure_is_trained_on() -> None:
    rows = [json.loads(line) for file in BY_HAND.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    measured = {row[key].lower() for row in rows for key in ("say", "first", "then", "ask") if key in row}
    trained = {text.lower() for each in changes() for text in (each.first, each.then)}
    assert not measured & trained


def test_a_later_note_updates_the_earlier_one_alone() -> None:
    rng = Random(1)
    samples = [sample for _ in range(40) for sample in draw_changed(TRAINED, rng)]
    assert [sample.reply for sample in samples if sample.sort == "updates"] == ["1: updates 1"] * 40
    assert [sample.reply for sample in samples if sample.sort == "new"] == ["1: new"] * 80


def test_a_turn_is_noted_under_its_topic() -> None:
    notes = {f"{each.topic}: {note}" for each in changes() for note in (each.first_note, each.then_note)}
    replies = [sample.reply for sample in draw_told(TRAINED, Random(2))]
    assert set(replies) <= {*notes, "none"}
    assert replies.count("none") == 3


def test_a_question_is_answered_from_the_later_note_or_not_at_all() -> None:
    rng = Random(3)
    for sample in (sample for _ in range(40) for sample in draw_asked(TRAINED, rng, known=0.7)):
        question = sample.messages[-1].text()
        asked = [each for each in changes() if question in each.ask]
        shown = "\n".join(message.text() for message in sample.messages[:-1])
        later = [told_to_user(each.then_note) for each in asked if each.then_note in shown]
        assert sample.reply == UNKNOWN or not later or sample.reply in later


@pytest.mark.parametrize(
    ("note", "answer"),
    [
        ("The user is turning 40 and has hired a barn.", "You are turning 40 and have hired a barn."),
        ("The user's son is at school and hates the blazer.", "Your son is at school and hates the blazer."),
    ],
)
def test_a_second_verb_of_the_user_turns_too(note: str, answer: str) -> None:
    assert told_to_user(note) == answer
