"""Filler prose: a public-domain novel in a training part and a held-out part, and other haystacks for evaluation."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

_TEXTS = Path(__file__).parent / "prose"
_BOOK, _ADDRESSES = _TEXTS / "moby_dick.txt", _TEXTS / "addresses.txt"
_NOISE = "The tide comes in and the tide goes out. A lamp is lit and a lamp is put out. Nothing else is told here. "
_LONGEST_NOISE = 1 << 20
_TRAIN_SHARE = 0.75
_WORD = re.compile(r"\S+")
_PASSAGE_CHARS = 1000
_REPLACED = (0.0, 0.1, 0.3, 1.0)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")

Part = Literal["train", "held_out"]
Haystack = Literal["novel", "addresses", "repeated"]
"""Prose that training never shows: the novel's held-out part, two presidents' addresses, or few sentences repeated."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A text to draw filler from."""

    text: str

    def slice(self, rng: random.Random, chars: int) -> str:
        """Draw a run of ``chars`` characters from anywhere, cutting words as chunking does."""
        start = rng.randrange(max(1, len(self.text) - chars))
        return self.text[start : start + chars]


@cache
def book(part: Part) -> Prose:
    """Return the first three quarters of the novel for training, or the rest for documents and evaluation."""
    text = _BOOK.read_text("utf-8")
    cut = text.index("\n\nCHAPTER", int(len(text) * _TRAIN_SHARE))
    return Prose(text[:cut] if part == "train" else text[cut:].lstrip())


@cache
def haystack(name: Haystack) -> Prose:
    """Return the prose of a haystack."""
    match name:
        case "novel":
            return book("held_out")
        case "addresses":
            return Prose(_ADDRESSES.read_text("utf-8"))
        case "repeated":
            return Prose(_NOISE * (_LONGEST_NOISE // len(_NOISE)))


def sprinkled(rng: random.Random, prose: Prose, words: Sequence[str]) -> Prose:
    """Return the prose, then the prose again with some of its words replaced by random `words`: none of a passage's, a
    tenth, a third or all of them.
    """
    text = prose.text
    passages = (text[at : at + _PASSAGE_CHARS] for at in range(0, len(text), _PASSAGE_CHARS))
    return Prose(text + "".join(_replaced(rng, passage, words, rng.choice(_REPLACED)) for passage in passages))


def _replaced(rng: random.Random, passage: str, words: Sequence[str], share: float) -> str:
    return _WORD.sub(lambda word: rng.choice(words) if rng.random() < share else word[0], passage)


def plant(rng: random.Random, prose: str, sentences: list[str]) -> str:
    """Insert the sentences, in order, at random sentence ends of the prose or at its own ends."""
    joints = [0, *(match.end() for match in _SENTENCE_END.finditer(prose)), len(prose)]
    spots = sorted(rng.choice(joints) for _ in sentences)
    for spot, sentence in reversed(list(zip(spots, sentences, strict=True))):
        before, after = prose[:spot], prose[spot:]
        gap = "" if not before or before[-1].isspace() else " "
        prose = f"{before}{gap}{sentence}" + (f" {after}" if after else "")
    return prose
