"""The prose to read, sentence by sentence, and questions about what its novels tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from trainer.small.kinds import Part
from trainer.tiny.prose import book, haystack

_END: Final = re.compile(
    r"""(?:(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<!St\.)(?<!\b[A-Z]\.)|(?<=[.!?]["']))\s+(?=["']?[A-Z])"""
)
_FOLDER: Final = Path(__file__).parent / "prose"
_TRAIN_NOVELS: Final = ("pride_and_prejudice", "sherlock_holmes", "great_expectations")
_HELD_OUT_NOVELS: Final = ("time_machine",)
_LONGEST_QUOTE: Final = 6
"""Sentences of a quote at most."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in two wordings, the answer as the ``quote`` has it, and the quote's places among the sentences."""

    wordings: tuple[str, str]
    answer: str
    quote: str
    places: range


@cache
def prose(part: Part) -> tuple[str, ...]:
    """Return the sentences of the part's authors: four to train, two presidents and a novelist held out."""
    texts = [haystack("addresses").text] if part == "held_out" else [book("train").text]
    texts += [(_FOLDER / f"{name}.txt").read_text("utf-8") for name in _novels(part)]
    return tuple(text for whole in texts for text in _END.split(" ".join(whole.split())))


@cache
def asked(part: Part) -> tuple[Asked, ...]:
    """Return the questions about the part's novels. Raises ValueError for a quote that no novel holds."""
    sentences = prose(part)
    runs = {
        " ".join(sentences[first : first + length]): range(first, first + length)
        for length in range(1, _LONGEST_QUOTE + 1)
        for first in range(len(sentences) - length + 1)
    }
    found = list[Asked]()
    for name in _novels(part):
        for entry in (_FOLDER / f"{name}.asked.txt").read_text("utf-8").strip().split("\n\n"):
            question, in_other_words, answer, quote = entry.split("\n")
            if quote not in runs or answer not in quote:
                raise ValueError(f"no novel answers {answer!r} by {quote!r}")
            found.append(Asked((question, in_other_words), answer, quote, runs[quote]))
    return tuple(found)


def _novels(part: Part) -> tuple[str, ...]:
    return _HELD_OUT_NOVELS if part == "held_out" else _TRAIN_NOVELS
