"""Scores the turns around a turn: an answer often shares no word with its question, but follows a turn that does."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

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


class Context(NamedTuple):
    """The shares that a turn gets from its neighbours. A tuple: a search makes hundreds."""

    neighbour: float
    session: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.neighbour + self.session


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


def contexts(placed: Sequence[Placed], relevance: Callable[[str], float], tuning: Tuning) -> dict[str, Context]:
    """Returns the shares of the placed items, which are in order, from their relevance (at least 0)."""
    if not placed:
        return {}
    values = np.array([relevance(one.id) for one in placed], np.float64)
    sessions = _sessions(np.array([one.place for one in placed], np.int64))
    neighbour = tuning.beside * _beside(values, sessions, 1) + tuning.near * _beside(values, sessions, 2)
    session = tuning.session * _best(values, sessions)
    return {
        one.id: Context(by_turns, by_session)
        for one, by_turns, by_session in zip(placed, neighbour.tolist(), session.tolist(), strict=True)
    }


def _sessions(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the number of each place's session, from 0."""
    return np.concatenate(([0], np.cumsum(np.diff(places) > _PAUSE)))


def _beside(values: Floats, sessions: NDArray[np.int64], distance: int) -> Floats:
    """Returns for each turn the sum of the values so many turns before and after it, in its session."""
    total = np.zeros_like(values)
    together = sessions[distance:] == sessions[:-distance]
    total[distance:] += values[:-distance] * together
    total[:-distance] += values[distance:] * together
    return total


def _best(values: Floats, sessions: NDArray[np.int64]) -> Floats:
    """Returns for each turn the highest value of its session."""
    best = np.zeros(int(sessions[-1]) + 1)
    np.maximum.at(best, sessions, values)
    return best[sessions]
