"""Maximal marginal relevance (Carbonell and Goldstein 1998) over the words of the candidates."""

import re
from collections.abc import Iterator, Sequence

from memory_store.retrieval.candidates import Candidate, ordered

_LOOKED_AT = 40
_WORD = re.compile(r"[^\W_]+")


def diversified(candidates: Sequence[Candidate], weight: float) -> Iterator[Candidate]:
    """Best first, where likeness to a better one (the share of common words) costs up to ``weight``.

    Each is chosen when it is asked for: an answer of ten need not know the order of forty.
    """
    left = ordered(candidates)
    head, tail = left[:_LOOKED_AT], left[_LOOKED_AT:]
    words = {one.id: _words(one.text) for one in head}
    likeness = dict.fromkeys(words, 0.0)
    scores = {one.id: one.score for one in head}
    worth = scores.copy()
    while head:
        best = max(head, key=lambda one: worth[one.id])
        head.remove(best)
        if likeness[best.id]:
            best.shares["likeness"] = -weight * likeness[best.id]
        yield best
        for one in head:
            alike = _alike(words[one.id], words[best.id])
            if alike > likeness[one.id]:
                likeness[one.id] = alike
                worth[one.id] = scores[one.id] - weight * alike
    yield from tail


def _words(text: str) -> frozenset[str]:
    return frozenset(match.group().casefold() for match in _WORD.finditer(text))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common or 1)
