"""Which chunks a reread visits: BM25 over the chunks, computed as they stream by, for the words of one question.

Only the counts of the question's own words are held: a few numbers for each chunk, however long the document is.
Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

import re
from collections import Counter
from dataclasses import dataclass
from heapq import nlargest
from math import log

from memloop.ports import Chunks

_K1 = 1.5
_B = 0.75
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Counts:
    """A chunk's length in words, and how often it has each word of the query."""

    words: int
    hits: Counter[str]


async def best_positions(query: str, chunks: Chunks, *, top: int) -> list[int]:
    """Positions of the ``top`` best chunks, in document order; all of them when no chunk has a word of the query."""
    terms = set(_words(query))
    counts = [_counted((await chunks.chunk(position)).text, terms) for position in range(len(chunks))]
    mean = sum(each.words for each in counts) / max(1, len(counts)) or 1.0
    held = Counter(term for each in counts for term in each.hits)
    rarity = {term: log(1 + (len(counts) - held[term] + 0.5) / (held[term] + 0.5)) for term in sorted(terms)}
    scores = [
        sum(
            rarity[term] * hits * (_K1 + 1) / (hits + _K1 * (1 - _B + _B * each.words / mean))
            for term, hits in sorted(each.hits.items())
        )
        for each in counts
    ]
    best = nlargest(top, range(len(counts)), key=lambda position: (scores[position], -position))
    found = sorted(position for position in best if scores[position] > 0)
    return found or list(range(len(counts)))


def _counted(text: str, terms: set[str]) -> _Counts:
    words = _words(text)
    return _Counts(len(words), Counter(word for word in words if word in terms))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
