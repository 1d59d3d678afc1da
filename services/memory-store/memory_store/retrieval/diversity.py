"""Maximal marginal relevance (Carbonell and Goldstein 1998) over the words of the candidates."""

from collections.abc import Iterator, Sequence

from memory_store.retrieval.candidates import Candidate, ordered
from memory_store.retrieval.cues import words_of

_LOOKED_AT = 40


def diversified(candidates: Sequence[Candidate], weight: float) -> Iterator[Candidate]:
    """Best first, where likeness to a better one (the share of common words) costs up to ``weight``.

    Each is chosen when it is asked for: an answer of ten need not know the order of forty.
    """
    left = ordered(candidates)
    head, tail = left[:_LOOKED_AT], left[_LOOKED_AT:]
    words = {one.id: frozenset(words_of(one.text)) for one in head}
    likeness = dict.fromkeys(words, 0.0)
    while head:
        best = max(head, key=lambda one: one.score - weight * likeness[one.id])
        head.remove(best)
        if likeness[best.id]:
            best.shares["likeness"] = -weight * likeness[best.id]
        yield best
        for one in head:
            likeness[one.id] = max(likeness[one.id], _alike(words[one.id], words[best.id]))
    yield from tail


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)
