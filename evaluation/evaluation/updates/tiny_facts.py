"""The same for the shipped tiny writer: codes of its world, in the wordings that it was trained on, in two halves."""

from collections.abc import Iterator, Sequence

from evaluation.updates.facts import Attribute
from trainer.tiny import world
from trainer.tiny.paraphrases import (
    HELD_OUT_ASIDES,
    HELD_OUT_CODES,
    KEYS,
    TRAINED_ASIDES,
    TRAINED_CODES,
    WORDINGS,
    noun_of,
)


def _attributes(codes: Sequence[str], asides: Sequence[str]) -> Iterator[Attribute]:
    for number, code in enumerate(codes):
        filled = {"attribute": code, "noun": noun_of(code), "who": "{who}", "value": "{value}"}
        yield Attribute(
            keys=tuple(key.format(**filled) for key in KEYS),
            wordings=tuple(words.format(**filled) for words in WORDINGS),
            values=world.VALUES,
            beside=asides[number % len(asides)].format(**filled),
        )


DEVELOPMENT = tuple(_attributes(TRAINED_CODES, TRAINED_ASIDES))
"""Codes that the tiny writer was trained to relate."""
HELD_OUT = tuple(_attributes(HELD_OUT_CODES, HELD_OUT_ASIDES))
"""Codes of no related memory of its training. Reported."""
PEOPLE = world.PEOPLE[:8]
