"""RULER's question tasks on made-up passages: places and people that do not exist, so no model answers from memory."""

from __future__ import annotations

import random
from itertools import count

from trainer.data.encyclopedia import ATTRIBUTES, filler, made_up_name, made_up_person
from trainer.tiny.prose import book

_PASSAGE_CHARS = 400
_NAMES = 100_000


def asked_passages(rng: random.Random, chars: int, *, hops: int) -> tuple[str, str, str]:
    """Return a question, about ``chars`` characters of numbered passages in random order, and the answer.

    The answer stands in one passage; with two ``hops`` the question names a person, and another passage the person's
    place. Every other passage gives the same attribute of another place, or another person's home.
    """
    first, attribute = rng.randrange(_NAMES), rng.choice(ATTRIBUTES)
    others = min(max(0, round(chars / _PASSAGE_CHARS) - hops), _NAMES - 1)
    places = [made_up_name((first + number) % _NAMES) for number in range(others + 1)]
    values = rng.sample(range(1000, max(10_000, 2000 + others)), others + 1)
    told = [f"The {attribute} of {place} is {value}." for place, value in zip(places, values, strict=True)]
    person = made_up_person(first)
    if hops == 2:
        strangers = [made_up_person((first + number) % _NAMES) for number in range(1, others // 2 + 1)]
        homes = [f"{each} lives in {place}." for each, place in zip(strangers, reversed(places), strict=False)]
        told = [told[0], f"{person} lives in {places[0]}.", *told[1 : others - len(homes) + 1], *homes]
    rng.shuffle(told)
    prose = book("held_out")
    passages = (
        f"Document {number}:\n{filler(prose, rng, _PASSAGE_CHARS)} {fact}" for number, fact in zip(count(1), told)
    )
    asked = f"of the place where {person} lives" if hops == 2 else f"of {places[0]}"
    return f"What is the {attribute} {asked}?", "\n\n".join(passages), str(values[0])
