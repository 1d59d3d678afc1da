"""The generator of ordinary English: its parts never mix, and a note says of nobody what was said of another."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from memloop.wire.chat import ChatMessage
from trainer.small import kinds
from trainer.small.evaluate import held_out_samples, judge
from trainer.small.facts import another_value, draw_fact, draw_person, tell
from trainer.small.kinds import English, every_kind, heard, part_of
from trainer.small.mix import SHARES, Sources, draw_group
from trainer.small.novels import prose
from trainer.small.persons import USER, asked_of, sentence, somebody, told_of, told_to_user
from trainer.small.reading import NOT_FOUND, draw_planted, relations
from trainer.small.relating import UNKNOWN, draw_answers
from trainer.small.sample import Sample, some_day
from trainer.small.writing import draw_writing

BY_HAND = Path(kinds.__file__).parent / "english" / "by_hand" / "small_talk.txt"
TRAINED, HELD_OUT = English("train", kinds_of=("train", "reward")), English("held_out", words_held_out=True)


def test_there_are_two_hundred_kinds_and_none_is_in_two_parts() -> None:
    assert len({kind.name for kind in every_kind()}) >= 200
    assert not {kind.name for kind in TRAINED.kinds} & {kind.name for kind in HELD_OUT.kinds}


def test_small_talk_wordings_and_values_of_the_held_out_part_are_never_trained_on() -> None:
    for sort, lines in TRAINED.ignored.items():
        assert not set(lines) & set(HELD_OUT.ignored[sort])
    for kind in every_kind():
        trained = set(kind.ways(kind.say, held_out=False))
        held_out = set(kind.ways(kind.say, held_out=True))
        assert trained == held_out or not trained & held_out
    for slot, values in TRAINED.values.items():
        assert not set(values) & set(HELD_OUT.values[slot])
    assert not {text for text in prose("train") if len(text) > 40} & set(prose("held_out"))


def test_no_line_that_is_measured_sounds_like_one_that_is_trained_on() -> None:
    trained = [*TRAINED.general, *(line for lines in TRAINED.ignored.values() for line in lines)]
    trained += [prompt for prompt, _ in TRAINED.replies]
    measured = [*HELD_OUT.general, *(line for lines in HELD_OUT.ignored.values() for line in lines)]
    measured += BY_HAND.read_text("utf-8").splitlines()
    assert not {heard(line) for line in trained} & {heard(line) for line in measured}


def test_a_text_stays_in_its_part() -> None:
    assert [part_of(f"kind {name}") for name in ("allergy", "fear", "locker")] == ["train", "held_out", "held_out"]


@pytest.mark.parametrize(
    ("said", "note", "answer"),
    [
        ("I live in Oslo", "The user lives in Oslo.", "You live in Oslo."),
        ("I don't eat my crusts", "The user doesn't eat their crusts.", "You don't eat your crusts."),
        ("my sister Eva has my keys", "The user's sister Eva has their keys.", "Your sister Eva has your keys."),
        (
            "I'm shy, so I study alone",
            "The user is shy, so the user studies alone.",
            "You are shy, so you study alone.",
        ),
        ("I was promoted", "The user was promoted.", "You were promoted."),
    ],
)
def test_a_statement_turns_to_a_note_and_an_answer(said: str, note: str, answer: str) -> None:
    assert sentence(told_of(said, USER)) == note
    assert told_to_user(note) == answer


def test_a_statement_and_a_question_turn_to_somebody_else() -> None:
    assert told_of("I lost my keys and I miss them", somebody("my aunt Eva", "she")) == (
        "my aunt Eva lost her keys and she misses them"
    )
    assert asked_of("What do I keep in my attic?", "Eva") == "What does Eva keep in their attic?"


@pytest.mark.parametrize("english", [TRAINED, HELD_OUT])
def test_every_note_and_answer_holds_its_gold(english: English) -> None:
    rng = Random(1)
    for kind in english.kinds:
        for _ in range(6):
            person = None if kind.own else rng.choice((None, draw_person(english, rng)))
            told = tell(draw_fact(english, rng, of=person, kind=kind), english, rng, at=some_day(rng))
            gold = told.fact.gold(english).lower()
            assert gold in told.note.lower()
            assert gold in told_to_user(told.note).lower()


def test_what_is_said_of_others_is_never_noted_of_the_user() -> None:
    rng = Random(2)
    for _ in range(400):
        sample = draw_writing(TRAINED, rng, sort="other")
        for line in sample.reply.splitlines():
            name = line.partition("'s ")[0]
            assert name in line.partition(": ")[2]


def test_four_of_ten_turns_are_to_be_ignored() -> None:
    rng = Random(3)
    sorts = [draw_writing(TRAINED, rng).sort for _ in range(1_000)]
    assert 0.4 <= sorts.count("ignore") / 1_000 <= 0.5


def test_what_no_note_holds_is_not_answered() -> None:
    rng = Random(4)
    samples = [sample for _ in range(60) for sample in draw_answers(TRAINED, rng)]
    unknown = [sample for sample in samples if sample.reply == UNKNOWN]
    assert 0.15 <= len(unknown) / len(samples) <= 0.4
    assert all(not sample.golds for sample in unknown)


@pytest.mark.parametrize(
    ("asked", "turned"),
    [
        ("Where do I park my car?", "Where does my aunt Eva park their car?"),
        ("What is my favourite food?", "What is my aunt Eva's favourite food?"),
        ("What do people call me?", "What do people call my aunt Eva?"),
    ],
)
def test_a_question_is_turned_to_somebody_named_once(asked: str, turned: str) -> None:
    assert asked_of(asked, "my aunt Eva") == turned


def test_a_planted_fact_of_two_hops_does_not_name_who_is_asked_about() -> None:
    rng = Random(5)
    for _ in range(100):
        planted = draw_planted(HELD_OUT, rng, hops=2)
        fact = next(text for text in planted.needed if planted.gold.lower() in text.lower())
        assert planted.gold != NOT_FOUND
        assert not any(name in fact for name in _names(planted.question))


def test_relations_between_people_are_many_and_each_is_of_one_part() -> None:
    roles = {part: {said.partition(" => ")[2] for said in relations(part)} for part in ("train", "held_out")}
    assert len(roles["train"]) >= 60
    assert len(roles["held_out"]) >= 10
    assert not roles["train"] & roles["held_out"]


def test_another_value_changes_the_gold_alone() -> None:
    kinds = {kind.name: kind for kind in every_kind()}
    pet = draw_fact(TRAINED, Random(6), kind=kinds["pet_age"])
    other = another_value(pet, TRAINED, Random(6))
    assert {slot for slot, value in other.values.items() if value != pet.values[slot]} == {"age"}
    with pytest.raises(ValueError, match="handedness is always left-handed"):
        another_value(draw_fact(TRAINED, Random(6), kind=kinds["handedness"]), TRAINED, Random(6))


def test_the_same_number_draws_the_same_group() -> None:
    for task in SHARES:
        assert draw_group(task, TRAINED, Random("0/7"), Sources()) == draw_group(
            task, TRAINED, Random("0/7"), Sources()
        )


def test_the_evaluation_takes_its_own_replies_for_right() -> None:
    samples = held_out_samples(40)
    report = judge(samples, [sample.reply for sample in samples]).report()
    wrong = {name: held[0] for name, held in report.items() if held[0] != (name != "false of the user")}
    assert wrong == {"small talk stored": 0.0}


def test_the_evaluation_counts_a_fact_of_another_as_false_of_the_user() -> None:
    samples = [draw_writing(HELD_OUT, Random(seed), sort="other") for seed in range(30)]
    said = ["\n".join(f"x: The user {line.split()[-1]}" for line in s.reply.splitlines()) for s in samples]
    assert judge(samples, said).report()["false of the user"][0] == 1.0


def test_a_line_in_the_words_of_the_users_turn_is_not_false_of_them() -> None:
    turn = ChatMessage(role="user", content="Date: 2026-11-27\n[user]: I haggled and we've settled on 120 euros.")
    sample = Sample("write", (turn,), "bill: The user pays 120 euros now.", sort="changed", golds=("120 euros",))
    said = ["bill: The user haggled and settled on 120 euros.", "age: The user is 36 years old."]
    assert judge([sample, sample], said).report()["false of the user"][0] == 0.5


def _names(question: str) -> set[str]:
    words = question.replace("'s", "").rstrip("?").split()
    return {f"{one} {two}" for one, two in pairwise(words) if one[0].isupper() and two[0].isupper()}
