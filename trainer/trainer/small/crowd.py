"""Sections that tell several things of several people, some of whom share a name, with a question about each.

Whoever reads them has to tell people and topics apart at once: a sentence answers one question and misleads in others.
They hold more questions for their tokens than prose with a few planted facts.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Final

from trainer.small.facts import draw_fact
from trainer.small.kinds import English
from trainer.small.reading import (
    Turn,
    any_section,
    draw_link,
    draw_question,
    full_name,
    planted_sentence,
    turns_over,
)
from trainer.small.sample import Sample

_PEOPLE: Final = 4
_KINDS: Final = 3
_TOLD: Final = 0.55
"""Chance of a person's fact to be told; the others are asked for in vain."""
_IN_VAIN: Final = 0.3
"""Share of the questions that the section does not answer, or only in part."""


def draw_reading_of_crowd(english: English, rng: Random, *, words: int = 80, questions: int = 8) -> list[Sample]:
    """Draw turns over one section as :func:`~trainer.small.reading.draw_reading` does."""
    people = _people(english, rng)
    rng.shuffle(people)
    links = {
        other: draw_link(english, rng, asked, other) for asked, other in zip(people[::2], people[1::2], strict=False)
    }
    planted, answered, in_vain = [link for link, _ in links.values()], list[Turn](), list[Turn]()
    for name, kind in product(people, rng.sample(english.readable, _KINDS)):
        fact = draw_fact(english, rng, kind=kind)
        told, gold = planted_sentence(english, rng, kind, fact.values, name), fact.gold(english)
        here = rng.random() < _TOLD
        now = (told,) if here else ()
        turns = [Turn(draw_question(english, rng, kind, name), gold, (told,), (), now)]
        if name in links:
            link, of_other = links[name]
            known = rng.choice(((), (), (link,)))
            question = draw_question(english, rng, kind, of_other)
            turns.append(Turn(question, gold, (link, told), known, (*(() if known else (link,)), *now)))
        (answered if here else in_vain).extend(turns)
        planted += now
    rng.shuffle(answered)
    rng.shuffle(in_vain)
    vain = in_vain[: round(questions * _IN_VAIN)]
    chosen = [*answered[: questions - len(vain)], *vain]
    return turns_over(chosen, any_section(english, rng, words), rng, planted=planted)


def _people(english: English, rng: Random) -> list[str]:
    """Draw full names, in two of three groups with a first name or a surname that two of them share."""
    names = dict[str, None]()
    while len(names) < _PEOPLE:
        names[full_name(english, rng)] = None
    (first, surname), *others = (name.split(" ", 1) for name in names)
    shared = rng.choice((others[0], [first, others[0][1]], [others[0][0], surname]))
    return list(dict.fromkeys(" ".join(name) for name in ([first, surname], shared, *others[1:])))
