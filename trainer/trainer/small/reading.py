"""Samples for reading long texts: facts about people planted into prose, and the memory after each section."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from trainer.small.facts import draw_fact
from trainer.small.kinds import English, Kind, Part, part_of, wordings
from trainer.small.persons import asked_of, sentence, somebody, told_of
from trainer.small.sample import PROFILE, Sample
from trainer.tiny.prose import book, haystack

NOT_FOUND: Final = "unknown"
"""The answer when the text does not tell."""
_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_FOLDER: Final = Path(__file__).parent / "english"
_PROSE: Final = Path(__file__).parent / "prose"
_TRAIN_TEXTS: Final = ("pride_and_prejudice", "sherlock_holmes", "great_expectations")
_HELD_OUT_TEXTS: Final = ("time_machine",)


@dataclass(frozen=True, slots=True)
class Planted:
    """A question about people in a text: the sentences that it needs, in order, and those near it that mislead."""

    question: str
    gold: str
    needed: tuple[str, ...]
    near: tuple[str, ...]


def draw_planted(english: English, rng: Random, *, hops: int) -> Planted:
    """Draw a question of one hop or two, with two or three near misses."""
    people: set[str] = set()
    while len(people) < 3:
        people.add(full_name(english, rng))
    asked, other, third = rng.sample(sorted(people), 3)
    fact = draw_fact(english, rng, kind=rng.choice(english.readable))
    while any(fact.gold(english).lower() in name.lower() for name in people):
        fact = draw_fact(english, rng, kind=rng.choice(english.readable))
    values, names = fact.values, [asked, other, third]
    subject = names[1] if hops == 2 else names[0]
    needed = [planted_sentence(english, rng, fact.kind, values, subject)]
    question = rng.choice(fact.kind.ways(fact.kind.ask, held_out=english.words_held_out))
    if hops == 2:
        told, _, role = rng.choice(_links(english.part)).partition(" => ")
        needed.insert(rng.randrange(2), sentence(told.replace("{a}", asked).replace("{b}", other)))
        question = asked_of(question, role.replace("{a}", asked))
    else:
        question = asked_of(question, subject)
    others = english.draw_values(fact.kind, rng)
    near = [planted_sentence(english, rng, fact.kind, others, third)]
    for name in (asked, third):
        held = draw_fact(english, rng, kind=rng.choice(english.readable))
        if held.kind.key != fact.kind.key:
            near.append(planted_sentence(english, rng, held.kind, held.values, name))
    return Planted(question, fact.gold(english), tuple(needed), tuple(near))


def planted_sentence(english: English, rng: Random, kind: Kind, values: dict[str, str], name: str) -> str:
    """Say a fact of a person with a full name, without a date that depends on the day."""
    while True:
        said = english.state(kind, {**values, "when": "soon", "ago": "long ago"}, rng)
        if said.note is None:
            return sentence(told_of(said.text, somebody(name, rng.choice(("she", "he")))))


def draw_reading(english: English, rng: Random, *, words: int = 130, questions: int = 1) -> list[Sample]:
    """Draw turns over one section: for each question the memory after it, then for each the answer from a memory.

    The section holds what a question needs, a part of it, or nothing, and near misses.
    """
    turns = [_Turn.draw(english, rng) for _ in range(questions)]
    section = prose_with(english, rng, tuple(text for turn in turns for text in turn.here), words=words)
    return [*(turn.read(section) for turn in turns), *(turn.conclude(rng) for turn in turns)]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A question, what the memory holds of it ``before`` a section, and what the section holds: ``now``, and near."""

    planted: Planted
    before: tuple[str, ...]
    now: tuple[str, ...]
    near: tuple[str, ...]

    @classmethod
    def draw(cls, english: English, rng: Random) -> _Turn:
        planted = draw_planted(english, rng, hops=rng.choice((1, 1, 2)))
        kept = rng.randint(0, len(planted.needed))
        now = planted.needed[kept:] if rng.random() < 0.65 else ()
        near = tuple(text for text in planted.near if rng.random() < 0.6) if now or rng.random() < 0.6 else ()
        return cls(planted, planted.needed[:kept], now, near)

    @property
    def here(self) -> tuple[str, ...]:
        """The sentences that the section holds for it."""
        return (*self.now, *self.near)

    def read(self, section: str) -> Sample:
        """Return the turn that rewrites the memory."""
        memory, after = _memory(self.before), _memory((*self.before, *self.now))
        messages = PROFILE.render("read", problem=self.planted.question, memory=memory, section=section)
        return Sample("read", messages, after, sort="keeps" if self.now else "leaves", golds=self.now)

    def conclude(self, rng: Random) -> Sample:
        """Return the turn that answers from a memory; in one of five a sentence is missing."""
        needed = self.planted.needed
        whole = rng.random() < 0.8
        memory = _memory(needed if whole else self.before[: len(needed) - 1])
        gold = self.planted.gold if whole else NOT_FOUND
        messages = PROFILE.render("answer", problem=self.planted.question, memory=memory)
        return Sample("conclude", messages, rf"\boxed{{{gold}}}", sort=f"{len(needed)} hops", golds=(gold,))


def _memory(sentences: Sequence[str]) -> str:
    return "\n".join(sentences) or PROFILE.empty_memory


def prose_with(english: English, rng: Random, planted: tuple[str, ...], *, words: int) -> str:
    """Return about so many words of prose with the sentences planted between its own."""
    sentences = prose(english.part)
    start = rng.randrange(len(sentences) - 400)
    taken: list[str] = []
    while sum(len(text.split()) for text in taken) < words:
        taken.append(sentences[start + len(taken)])
    for text in planted:
        taken.insert(rng.randrange(len(taken) + 1), text)
    return " ".join(taken)


def full_name(english: English, rng: Random) -> str:
    """Draw a first name and a surname."""
    first = rng.choice(english.values[rng.choice(("woman", "man"))])
    return f"{first} {rng.choice(english.values['surname'])}"


@cache
def prose(part: Part) -> tuple[str, ...]:
    """Return the sentences of the part's authors: four to train, two presidents and a novelist held out."""
    texts = [haystack("addresses").text] if part == "held_out" else [book("train").text]
    names = _HELD_OUT_TEXTS if part == "held_out" else _TRAIN_TEXTS
    texts += [(_PROSE / f"{name}.txt").read_text("utf-8") for name in names]
    return tuple(text for whole in texts for text in _END.split(" ".join(whole.split())))


@cache
def _links(part: Part) -> tuple[str, ...]:
    lines = tomllib.loads((_FOLDER / "links.toml").read_text("utf-8"))["said"].strip().splitlines()
    roles = dict.fromkeys(line.partition(" => ")[2] for line in lines)
    held = {role for role in roles if (part_of(f"link {role}") == "held_out") == (part == "held_out")}
    return tuple(way for line in lines if line.partition(" => ")[2] in held for way in wordings(line))
