"""Scores the turns around a turn: an answer often shares no word with its question, but follows a turn that does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_store.items.conversation import PLACES_PER_SECOND
from memory_store.retrieval.candidates import Candidate
from memory_store.retrieval.tuning import Tuning
from memory_store.vectors.filters import AnyOf, Condition, NumberRange
from memory_store.vectors.port import Placed

_PAUSE_S = 1800
"""A longer silence parts two sessions."""
_PAUSE = _PAUSE_S * PLACES_PER_SECOND

Floats: TypeAlias = NDArray[np.float64]
Span: TypeAlias = tuple[int, int]
"""The first and the last place."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """The shares that turns get from the turns around them, by id; ``total`` is both together."""

    neighbour: Mapping[str, float]
    session: Mapping[str, float]
    total: Mapping[str, float]

    def shares(self, item_id: str) -> dict[str, float]:
        """Returns the item's shares, without those that are 0."""
        named = (("neighbour", self.neighbour), ("session", self.session))
        return {name: share for name, shares in named if (share := shares.get(item_id, 0.0))}


NO_CONTEXTS: Final = Contexts({}, {}, {})


def around(candidates: Sequence[Candidate]) -> Sequence[Span]:
    """Returns the spans of places of all items that may be in a session with one of the candidates, in order."""
    places = sorted(one.place for one in candidates if one.place is not None)
    spans: list[Span] = []
    for place in places:
        start, end = place - _PAUSE, place + _PAUSE
        if spans and start <= spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def in_spans(spans: Sequence[Span]) -> Condition:
    """Returns the condition of the items in the spans, of which there is at least one."""
    return AnyOf(tuple(NumberRange("place", gte=start, lte=end) for start, end in spans))


def contexts(placed: Sequence[Placed], relevance: Mapping[str, float], tuning: Tuning) -> Contexts:
    """Returns the shares of the placed items, which are in order, from their relevance (0 where there is none)."""
    if not placed:
        return NO_CONTEXTS
    ids = [one.id for one in placed]
    values = np.array([relevance.get(one, 0.0) for one in ids], np.float64)
    # The number of each place's session, from 0
    sessions = np.concatenate(([0], np.cumsum(np.diff(np.array([one.place for one in placed], np.int64)) > _PAUSE)))
    neighbour = tuning.beside * _beside(values, sessions, 1) + tuning.near * _beside(values, sessions, 2)
    # For each turn the highest value of its session
    best = np.zeros(int(sessions[-1]) + 1)
    np.maximum.at(best, sessions, values)
    session = tuning.session * best[sessions]
    return Contexts(
        *(dict(zip(ids, share.tolist(), strict=True)) for share in (neighbour, session, neighbour + session))
    )


def _beside(values: Floats, sessions: NDArray[np.int64], distance: int) -> Floats:
    """Returns for each turn the sum of the values so many turns before and after it, in its session."""
    total = np.zeros_like(values)
    together = sessions[distance:] == sessions[:-distance]
    total[distance:] += values[:-distance] * together
    total[:-distance] += values[distance:] * together
    return total
