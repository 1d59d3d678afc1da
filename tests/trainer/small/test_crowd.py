"""Sections about several people: each question is answered by its own person's sentence, or by none."""

import re
from random import Random

from trainer.small.crowd import draw_reading_of_crowd
from trainer.small.kinds import English
from trainer.small.sample import PROFILE, Sample

TRAINED = English("train", kinds_of=("train", "reward"))


def _read(seed: int) -> list[Sample]:
    turns = draw_reading_of_crowd(TRAINED, Random(seed), words=60, questions=8)
    return [turn for turn in turns if turn.task == "read"]


def _tagged(turn: Sample, tag: str) -> str:
    return turn.messages[-1].text().partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]


def test_what_the_section_tells_follows_the_memory_in_the_section_s_order() -> None:
    for turn in (turn for seed in range(60) for turn in _read(seed)):
        held = _tagged(turn, "memory").replace(PROFILE.empty_memory, "").splitlines()
        lines = turn.reply.replace(PROFILE.empty_memory, "").splitlines()
        places = [_tagged(turn, "section").find(line) for line in lines[len(held) :]]
        assert lines[: len(held)] == held
        assert places == sorted(places)
        assert -1 not in places


def test_a_question_names_a_person_of_each_sentence_that_answers_it() -> None:
    for turn in (turn for seed in range(60) for turn in _read(seed) if turn.sort == "keeps"):
        assert any(name in _tagged(turn, "problem") for name in _names(turn.reply))


def test_some_questions_are_asked_in_vain_and_most_are_not() -> None:
    sorts = [turn.sort for seed in range(100) for turn in _read(seed)]
    assert 0.15 <= sorts.count("leaves") / len(sorts) <= 0.4


def test_a_section_s_questions_are_all_different() -> None:
    for seed in range(60):
        questions = [_tagged(turn, "problem") for turn in _read(seed)]
        assert len(set(questions)) == len(questions)


def _names(text: str) -> list[str]:
    """Return the first names and surnames in a text; a surname may have two words."""
    surnames = "|".join(sorted(TRAINED.values["surname"], key=len, reverse=True))
    return re.findall(rf"[\w'-]+ (?:{surnames})\b", text)
