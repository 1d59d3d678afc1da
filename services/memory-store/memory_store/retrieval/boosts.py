"""Boosts of a candidate's score: each adds a share of its own, which ``explain`` shows under its name."""

import re
from collections.abc import Sequence
from datetime import datetime

from memory_store.retrieval.candidates import Candidate, ordered
from memory_store.retrieval.time_windows import windows

_TURN = re.compile(r"(?P<event>.+):(?P<number>\d{1,9})")
_PROMPTERS = 10
"""The number of best turns whose neighbours are looked up."""


def boost_dates(candidates: Sequence[Candidate], question: str, weight: float, *, asked_at: datetime) -> None:
    """Boosts memories from a time that the question names."""
    named = windows(question, asked_at=asked_at)
    for one in candidates if named else ():
        said_at = one.said_at
        if any(window.holds(said_at) for window in named):
            one.shares["date"] = weight


def wanted_neighbours(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Returns the keys of the turns beside the best ones that the rankings did not bring."""
    known = {one.key for one in candidates}
    best = [one for one in ordered(candidates)[:_PROMPTERS] if one.is_raw]
    beside = dict.fromkeys(key for one in best for key in neighbours_of(one.key))
    return tuple(key for key in beside if key not in known)


def neighbours_of(key: str) -> tuple[str, ...]:
    """Returns the keys of the turn before and the turn after, in the same write."""
    turn = _TURN.fullmatch(key)
    if turn is None:
        return ()
    number = int(turn["number"])
    return tuple(f"{turn['event']}:{other}" for other in (number - 1, number + 1) if other >= 0)


def boost_neighbours(candidates: Sequence[Candidate], weight: float) -> None:
    """Adds a part of the better neighbour's score to a turn: an answer often shares no word with its question."""
    by_key = {one.key: one for one in candidates if one.is_raw}
    scores = {key: one.score for key, one in by_key.items()}
    for key, one in by_key.items():
        best = max((scores[other] for other in neighbours_of(key) if other in scores), default=0.0)
        if best:
            one.shares["neighbour"] = weight * best
