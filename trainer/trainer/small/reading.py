"""Samples for reading long texts: the memory after each section, and the answer from it.

Questions are about facts of people that are planted into prose, and about what the novels themselves tell.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from trainer.small.facts import draw_fact
from trainer.small.kinds import English, Kind, Part, part_of, wordings
from trainer.small.novels import Asked, asked, prose
from trainer.small.persons import asked_of, sentence, somebody, told_of
from trainer.small.sample import PROFILE, Sample

NOT_FOUND: Final = "unknown"
"""The answer when the text does not tell."""
_TAIL: Final = 400
"""Sentences at the end of the prose where no section begins, so that a long one is full."""
_FOLDER: Final = Path(__file__).parent / "english"


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
    named = asked
    if hops == 2:
        link, named = draw_link(english, rng, asked, other)
        needed.insert(rng.randrange(2), link)
    question = draw_question(english, rng, fact.kind, named)
    others = english.draw_values(fact.kind, rng)
    near = [planted_sentence(english, rng, fact.kind, others, third)]
    for name in (asked, third):
        held = draw_fact(english, rng, kind=rng.choice(english.readable))
        if held.kind.key != fact.kind.key:
            near.append(planted_sentence(english, rng, held.kind, held.values, name))
    return Planted(question, fact.gold(english), tuple(needed), tuple(near))


def draw_question(english: English, rng: Random, kind: Kind, name: str) -> str:
    """Ask for a person's fact of a kind, in a way that names the person."""
    ways = (asked_of(way, name) for way in kind.ways(kind.ask, held_out=english.words_held_out))
    named = [way for way in ways if name in way]
    return rng.choice([way for way in named if way.count(name) == 1] or named)


def draw_link(english: English, rng: Random, asked: str, other: str) -> tuple[str, str]:
    """Say what somebody is to the one asked about, and how a question names them by it ("Marta's dentist")."""
    told, _, role = rng.choice(relations(english.part)).partition(" => ")
    return sentence(told.replace("{a}", asked).replace("{b}", other)), role.replace("{a}", asked)


def planted_sentence(english: English, rng: Random, kind: Kind, values: dict[str, str], name: str) -> str:
    """Say a fact of a person with a full name, without a date that depends on the day."""
    while True:
        said = english.state(kind, {**values, "when": "soon", "ago": "long ago"}, rng)
        text = sentence(told_of(said.text, somebody(name, rng.choice(("she", "he")))))
        if said.note is None and name in text:
            return text


def draw_reading(english: English, rng: Random, *, words: int = 130, questions: int = 1) -> list[Sample]:
    """Draw turns over one section: for each question the memory after it, then for each the answer from a memory.

    The section holds what a question needs, a part of it, or nothing, and near misses.
    """
    section = any_section(english, rng, words)
    return turns_over([Turn.draw(english, rng) for _ in range(questions)], section, rng)


def draw_reading_of_novel(english: English, rng: Random, *, words: int = 130, questions: int = 2) -> list[Sample]:
    """Draw turns as :func:`draw_reading` does, the first about what a novel tells in the section.

    Half of the questions at most are about the section, a third about other places, the rest about planted facts.
    """
    sentences, known = prose(english.part), asked(english.part)
    first = rng.choice(known)
    start, before = first.places.start, rng.randrange(words)
    while start > 0 and (before := before - len(sentences[start - 1].split())) >= 0:
        start -= 1
    section = _section(english, start, words, up_to=first.places.stop)
    told = [each for each in known if each.places.start >= start and each.places.stop <= start + len(section)]
    for each in sorted(told, key=lambda each: each.places.start, reverse=True):
        section[each.places.start - start : each.places.stop - start] = [each.quote]  # nothing is planted into it
    told.sort(key=lambda each: each != first)
    elsewhere = [each for each in rng.sample(known, questions // 3) if each not in told]
    turns = [Turn.of_novel(each, rng, here=True) for each in told[: -(-questions // 2)]]
    turns += [Turn.of_novel(each, rng, here=False) for each in elsewhere]
    turns += [Turn.draw(english, rng) for _ in range(questions - len(turns))]
    return turns_over(turns, section, rng)


def any_section(english: English, rng: Random, words: int) -> list[str]:
    """Return the sentences from anywhere in the prose on, about so many words."""
    return _section(english, rng.randrange(len(prose(english.part)) - _TAIL), words)


def _section(english: English, start: int, words: int, *, up_to: int = 0) -> list[str]:
    """Return the sentences from ``start`` on: about so many words, and those before ``up_to``."""
    taken = list[str]()
    for place, text in enumerate(prose(english.part)[start:], start):
        if place >= up_to and sum(len(each.split()) for each in taken) >= words:
            break
        taken.append(text)
    return taken


def turns_over(
    turns: Sequence[Turn], section: Sequence[str], rng: Random, *, planted: Sequence[str] = ()
) -> list[Sample]:
    """Plant what the turns need, and what else is ``planted``, into the section: all rewritings, then all answers."""
    texts = list(section)
    for text in (*planted, *(text for turn in turns for text in turn.planted)):
        texts.insert(rng.randrange(len(texts) + 1), text)
    whole = " ".join(texts)
    return [*(turn.read(whole) for turn in turns), *(turn.conclude(rng) for turn in turns)]


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, all that answers it, what the memory holds of that ``before`` a section, and what it tells ``now``.

    ``planted`` are the sentences that the section holds for it alone.
    """

    question: str
    gold: str
    needed: tuple[str, ...]
    before: tuple[str, ...]
    now: tuple[str, ...]
    planted: tuple[str, ...] = ()
    about: str = ""

    @classmethod
    def draw(cls, english: English, rng: Random) -> Turn:
        """Draw a turn about planted facts."""
        drawn = draw_planted(english, rng, hops=rng.choice((1, 2)))
        kept = rng.randint(0, len(drawn.needed))
        now = drawn.needed[kept:] if rng.random() < 0.8 else ()
        near = tuple(text for text in drawn.near if rng.random() < 0.6) if now or rng.random() < 0.6 else ()
        return cls(drawn.question, drawn.gold, drawn.needed, drawn.needed[:kept], now, (*now, *near))

    @classmethod
    def of_novel(cls, each: Asked, rng: Random, *, here: bool) -> Turn:
        """Return the turn of a question about a novel, which the section answers or not."""
        needed = (each.quote,)
        before = () if here or rng.random() < 0.5 else needed
        return cls(rng.choice(each.wordings), each.answer, needed, before, needed if here else (), (), " in novels")

    def read(self, section: str) -> Sample:
        """Return the turn that rewrites the memory: what it tells now follows in the order of the section."""
        now = sorted(self.now, key=section.index)
        memory, after = _memory(self.before), _memory((*self.before, *now))
        messages = PROFILE.render("read", problem=self.question, memory=memory, section=section)
        return Sample("read", messages, after, sort=("keeps" if self.now else "leaves") + self.about, golds=self.now)

    def conclude(self, rng: Random) -> Sample:
        """Return the turn that answers from a memory; in one of five a sentence is missing."""
        whole = rng.random() < 0.8
        memory = _memory(self.needed if whole else self.before[: len(self.needed) - 1])
        gold = self.gold if whole else NOT_FOUND
        messages = PROFILE.render("answer", problem=self.question, memory=memory)
        sort = f"{len(self.needed)} hops{self.about}"
        return Sample("conclude", messages, rf"\boxed{{{gold}}}", sort=sort, golds=(gold,))


def _memory(sentences: Sequence[str]) -> str:
    return "\n".join(sentences) or PROFILE.empty_memory


def full_name(english: English, rng: Random) -> str:
    """Draw a first name and a surname."""
    first = rng.choice(english.values[rng.choice(("woman", "man"))])
    return f"{first} {rng.choice(english.values['surname'])}"


@cache
def relations(part: Part) -> tuple[str, ...]:
    """Return what two people of a text are to each other, as ``said => role``: each role is of one part."""
    lines = tomllib.loads((_FOLDER / "links.toml").read_text("utf-8"))["said"].strip().splitlines()
    roles = dict.fromkeys(line.partition(" => ")[2] for line in lines)
    held = {role for role in roles if (part_of(f"link {role}") == "held_out") == (part == "held_out")}
    return tuple(way for line in lines if line.partition(" => ")[2] in held for way in wordings(line))
