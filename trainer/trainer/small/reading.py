"""Samples for reading long texts: facts about people planted into prose, and the memory after each section."""

from __future__ import annotations

import re
import tomllib
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
    fact = draw_fact(english, rng, kind=rng.choice(_readable(english)))
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
        held = draw_fact(english, rng, kind=rng.choice(_readable(english)))
        if held.kind.key != fact.kind.key:
            near.append(planted_sentence(english, rng, held.kind, held.values, name))
    return Planted(question, fact.gold(english), tuple(needed), tuple(near))


def planted_sentence(english: English, rng: Random, kind: Kind, values: dict[str, str], name: str) -> str:
    """Say a fact of a person with a full name, without a date that depends on the day."""
    while True:
        said = english.state(kind, {**values, "when": "soon", "ago": "long ago"}, rng)
        if said.note is None:
            return sentence(told_of(said.text, somebody(name, rng.choice(("she", "he")))))


def draw_reading(english: English, rng: Random, *, words: int = 130) -> list[Sample]:
    """Draw one text's turns: a section with something to keep or not, and the answer from what was kept."""
    planted = draw_planted(english, rng, hops=rng.choice((1, 1, 2)))
    kept = rng.randint(0, len(planted.needed))
    before, left = planted.needed[:kept], planted.needed[kept:]
    now = left if rng.random() < 0.65 else ()
    near = [text for text in planted.near if rng.random() < 0.7] if now or rng.random() < 0.6 else []
    section = prose_with(english, rng, (*now, *near), words=words)
    memory = "\n".join(before) or PROFILE.empty_memory
    after = "\n".join((*before, *now)) or PROFILE.empty_memory
    read = PROFILE.render("read", problem=planted.question, memory=memory, section=section)
    whole = rng.random() < 0.8
    held = "\n".join(planted.needed if whole else before[: len(planted.needed) - 1]) or PROFILE.empty_memory
    gold = planted.gold if whole else NOT_FOUND
    answer = PROFILE.render("answer", problem=planted.question, memory=held)
    return [
        Sample("read", read, after, sort="keeps" if now else "leaves", golds=now),
        Sample("conclude", answer, rf"\boxed{{{gold}}}", sort=f"{len(planted.needed)} hops", golds=(gold,)),
    ]


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


def _readable(english: English) -> list[Kind]:
    held_out = english.words_held_out
    return [
        kind
        for kind in english.kinds
        if not kind.own and any("=>" not in way for way in kind.ways(kind.say, held_out=held_out))
    ]


@cache
def _links(part: Part) -> tuple[str, ...]:
    lines = tomllib.loads((_FOLDER / "links.toml").read_text("utf-8"))["said"].strip().splitlines()
    roles = dict.fromkeys(line.partition(" => ")[2] for line in lines)
    held = {role for role in roles if (part_of(f"link {role}") == "held_out") == (part == "held_out")}
    return tuple(way for line in lines if line.partition(" => ")[2] in held for way in wordings(line))
