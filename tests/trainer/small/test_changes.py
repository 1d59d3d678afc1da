"""Statements typed by hand for training: their notes hold what is asked for, and no measure knows them."""

import json
import re
from pathlib import Path
from random import Random

import pytest

import trainer.small
from trainer.small.changes import changes, draw_asked, draw_changed, draw_told, turns
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
        assert len(each.ask) in {2, 4}
        held = re.compile(rf"\b{re.escape(each.gold)}\b", re.IGNORECASE)
        assert not any(held.search(question) for question in (*each.ask, *each.near))


def test_no_statement_of_a_measure_is_trained_on() -> None:
    rows = [json.loads(line) for file in BY_HAND.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    measured = {row[key].lower() for row in rows for key in ("say", "first", "then", "ask") if key in row}
    trained = {turn.said.lower() for each in changes() for turn in each.turns()} | {
        turn.said.lower() for turn in turns()
    }
    assert not measured & trained
    seen = [_words(text) for text in measured]
    trained_words = [(text, _words(text)) for text in trained]
    assert not [text for text, own in trained_words if any(len(own & each) >= 0.6 * len(own | each) for each in seen)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z']+", text)) - {
        "i",
        "my",
        "a",
        "the",
        "is",
        "to",
        "and",
        "in",
        "of",
        "i'm",
        "it",
        "for",
    }


def test_a_later_note_updates_the_earlier_one_alone() -> None:
    rng = Random(1)
    samples = [sample for _ in range(40) for sample in draw_changed(TRAINED, rng)]
    assert [sample.reply for sample in samples if sample.sort == "updates"] == ["1: updates 1"] * 40
    assert [sample.reply for sample in samples if sample.sort == "new"] == ["1: new"] * 80


def test_each_note_of_a_turn_is_kept_under_its_topic() -> None:
    told = [turn for each in changes() for turn in each.turns()] + [*turns()]
    notes = {turn.said: "\n".join(f"{topic}: {note}" for topic, note in turn.notes) or "none" for turn in told}
    rng = Random(2)
    drawn = [sample for _ in range(20) for sample in draw_told(TRAINED, rng)]
    kept = [sample for sample in drawn if sample.reply != "none"]
    assert 60 <= len(kept) <= 100
    assert all(
        any(said in text and notes[said] == sample.reply for said in notes)
        for sample in kept
        for text in [sample.messages[-1].text()]
    )


def test_a_turn_of_several_facts_has_a_question_about_each() -> None:
    assert all(len(turn.notes) == len(turn.ask) for turn in turns())
    assert any(not turn.notes for turn in turns())
    assert any(len(turn.notes) > 2 for turn in turns())


def test_a_question_is_answered_from_the_later_note_or_not_at_all() -> None:
    rng = Random(3)
    for sample in (sample for _ in range(40) for sample in draw_asked(TRAINED, rng, known=0.7)):
        question = sample.messages[-1].text()
        asked = [each for each in changes() if question in each.ask]
        told = [
            told_to_user(note)
            for turn in turns()
            for (_, note), ask in zip(turn.notes, turn.ask, strict=True)
            if ask == question
        ]
        assert asked or sample.reply in {UNKNOWN, *told}
        shown = "\n".join(message.text() for message in sample.messages[:-1])
        later = [told_to_user(each.then_note) for each in asked if each.then_note in shown]
        assert sample.reply == UNKNOWN or not later or sample.reply in {*later, *told}


@pytest.mark.parametrize(
    ("note", "answer"),
    [
        ("The user is turning 40 and has hired a barn.", "You are turning 40 and have hired a barn."),
        ("The user's son is at school and hates the blazer.", "Your son is at school and hates the blazer."),
    ],
)
def test_a_second_verb_of_the_user_turns_too(note: str, answer: str) -> None:
    assert told_to_user(note) == answer
