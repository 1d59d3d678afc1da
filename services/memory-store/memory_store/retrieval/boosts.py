"""The tricks that raise a candidate: each adds a share of its own, and ``explain`` shows it under its name."""

import re
from collections.abc import Sequence
from datetime import datetime

from memory_store.retrieval.candidates import Candidate, ordered
from memory_store.retrieval.time_windows import asks_for_now, speakers_named, windows, words_of

_TURN = re.compile(r"(?P<event>.+):(?P<number>\d{1,9})")
_PROMPTERS = 10
"""So many of the best turns have their neighbours looked at."""


def raise_speakers(candidates: Sequence[Candidate], question: str, weight: float) -> None:
    """Turns of the speaker whom the question names, and memories that name somebody whom it names."""
    named = speakers_named(question, candidates)
    for one in candidates:
        if named & (one.tags if one.is_raw else frozenset(words_of(one.text))):
            one.shares["speaker"] = weight


def raise_dates(candidates: Sequence[Candidate], question: str, weight: float, *, asked_at: datetime) -> None:
    """What was said in a time that the question names."""
    named = windows(question, asked_at=asked_at)
    for one in candidates:
        if any(window.holds(one.said_at) for window in named):
            one.shares["date"] = weight


def raise_newest(candidates: Sequence[Candidate], question: str, weight: float) -> None:
    """A part of its own score the newer it is, in the order of event time, where the question asks for what holds."""
    if asks_for_now(question) and len(candidates) > 1:
        by_time = sorted(candidates, key=lambda one: one.said_at)
        for place, one in enumerate(by_time):
            one.shares["recency"] = weight * one.score * place / (len(by_time) - 1)


def wanted_neighbours(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """The keys of the turns beside the best ones that the rankings did not bring."""
    known = {one.key for one in candidates}
    best = [one for one in ordered(candidates)[:_PROMPTERS] if one.is_raw]
    beside = dict.fromkeys(key for one in best for key in neighbours_of(one.key))
    return tuple(key for key in beside if key not in known)


def neighbours_of(key: str) -> tuple[str, ...]:
    """The keys of the turn before and the turn after, in the same write."""
    turn = _TURN.fullmatch(key)
    if turn is None:
        return ()
    number = int(turn["number"])
    return tuple(f"{turn['event']}:{other}" for other in (number - 1, number + 1) if other >= 0)


def raise_neighbours(candidates: Sequence[Candidate], weight: float) -> None:
    """A turn gets a part of the better of its neighbours: an answer often shares no word with its question."""
    by_key = {one.key: one for one in candidates if one.is_raw}
    scores = {key: one.score for key, one in by_key.items()}
    for key, one in by_key.items():
        best = max((scores[other] for other in neighbours_of(key) if other in scores), default=0.0)
        if best:
            one.shares["neighbour"] = weight * best
