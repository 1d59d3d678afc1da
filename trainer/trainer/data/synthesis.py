"""Makes long documents around questions: a question's own paragraphs among others, its evidence at any place.

The published sets used one permutation for all items of a size, so that evidence always stood in the same slots; here
each item has its own, so every piece of evidence stands at any place with equal chance. Source of the format: MemAgent
(arXiv 2507.02259).
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from trainer.data.hotpot import HotpotQuestion, Paragraph
from trainer.data.json_rows import DataError
from trainer.data.pool import Pool


@dataclass(frozen=True, slots=True)
class Size:
    """An item's length: exactly so many ``documents``, or as many as fit into ``tokens`` by ``count``."""

    documents: int | None = None
    tokens: int | None = None
    count: Callable[[str], int] = len

    def __post_init__(self) -> None:
        if (self.documents is None) == (self.tokens is None):
            raise ValueError("a size is a number of documents or a number of tokens")


@dataclass(frozen=True, slots=True)
class LongItem:
    """A question with its documents in order; ``evidence``: the numbers, from 1, of those with the facts."""

    id: str
    question: str
    answer: str
    documents: tuple[Paragraph, ...]
    evidence: tuple[int, ...]

    @property
    def context(self) -> str:
        """Join the documents into one text."""
        return "\n\n".join(_shown(number, each) for number, each in enumerate(self.documents, 1))


def compose(question: HotpotQuestion, pool: Pool, size: Size, rng: random.Random) -> LongItem:
    """Combine the question's evidence, its other paragraphs and distractors up to the size, and shuffle them.

    Raises DataError when the pool has too few distractors, or the evidence alone exceeds the size.
    """
    own = sorted(question.paragraphs.values(), key=lambda paragraph: paragraph.title not in question.evidence)
    offered = _offered(own, pool, rng)
    needed = len(question.evidence)
    chosen = _so_many(offered, size.documents) if size.documents else _that_fit(offered, size, needed)
    if len(chosen) < max(needed, size.documents or 0):
        raise DataError(_too_few(question, len(chosen), needed, size))
    rng.shuffle(chosen)
    numbers = tuple(number for number, each in enumerate(chosen, 1) if each.title in question.evidence)
    return LongItem(question.id, question.question, question.answer, tuple(chosen), numbers)


def _offered(own: list[Paragraph], pool: Pool, rng: random.Random) -> Iterator[Paragraph]:
    """Yield the question's own paragraphs, then distractors in random order, with unique titles."""
    yield from own
    titles = {paragraph.title for paragraph in own}
    for number in _in_any_order(len(pool), rng):
        stranger = pool[number]
        if stranger.title not in titles:
            yield stranger


def _in_any_order(count: int, rng: random.Random) -> Iterator[int]:
    """Yield the numbers below ``count`` in lazily shuffled order; memory grows only with the numbers drawn."""
    moved: dict[int, int] = {}
    for left in range(count, 0, -1):
        at = rng.randrange(left)
        yield moved.get(at, at)
        moved[at] = moved.pop(left - 1, left - 1)


def _so_many(offered: Iterator[Paragraph], documents: int) -> list[Paragraph]:
    return list(islice(offered, documents))


def _that_fit(offered: Iterator[Paragraph], size: Size, needed: int) -> list[Paragraph]:
    """Return documents up to the first that does not fit; none at all if the evidence does not fit."""
    room, chosen = size.tokens or 0, list[Paragraph]()
    for paragraph in offered:
        room -= size.count(_shown(1000, paragraph) + "\n\n")
        if room < 0:
            break
        chosen.append(paragraph)
    return chosen if len(chosen) >= needed else []


def _shown(number: int, paragraph: Paragraph) -> str:
    return f"Document {number}:\n{paragraph.title}\n{paragraph.text}"


def _too_few(question: HotpotQuestion, found: int, needed: int, size: Size) -> str:
    if size.tokens is not None:
        return f"{question.question!r}: its evidence does not fit {size.tokens} tokens"
    if needed > (size.documents or 0):
        return f"{question.question!r} has evidence in more than {size.documents} documents"
    return f"{size.documents} documents are asked for, and the file has {found} different paragraphs"
