"""Scores an item: by its own relevance, by the turns around it, and by boosts of its speaker, times and feedback.

An item's own relevance is its cosine and its BM25 score on one scale. Scores are added, not their ranks: the distance
between the first and the second matters. A fixed scale needs no statistics over the namespace, so a ranking may be cut
short. The turns around it count because an answer often shares no word with its question, but follows a turn that does.
Each boost adds a share of its own, which ``explain`` shows under its name.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from memloop.wire.feedback import Feedback
from memloop.wire.memory import NamedTime
from memory_store.items.identity import PLACES_PER_SECOND
from memory_store.vectors.port import Payload, Placed, Ranked


@dataclass(frozen=True, slots=True)
class Tuning:
    """Weights of a search; 0 switches a part off.

    ``dense``: of the cosine. ``sparse``: of a BM25 score, which is 5 to 15 for a good match. ``beside`` and ``near``:
    the part of a turn's relevance that the turns one and two places away get. ``session``: the part of a session's
    best relevance that all of its turns get. ``speaker``: added to a turn whose speaker the question names; the name
    is then left out of both rankings. ``date``: added where the question names the time. ``asking``: the cost of a
    turn that ends with a question. ``helpful``: added to a memory that a client called helpful; ``outdated``: the cost
    of one that a client called outdated. One that a client called wrong is left out, whatever the weights.
    """

    dense: float = 1.0
    sparse: float = 0.03
    beside: float = 0.3
    near: float = 0.1
    session: float = 0.2
    speaker: float = 0.25
    date: float = 0.2
    asking: float = 0.1
    helpful: float = 0.05
    outdated: float = 0.3


PLAIN = Tuning(beside=0.0, near=0.0, session=0.0, speaker=0.0, date=0.0, asking=0.0, helpful=0.0, outdated=0.0)
"""The two rankings added up, and nothing else."""


_TIMES: Final = TypeAdapter(tuple[NamedTime, ...])
DECIMALS = 6
"""Of a score that count for the order: processors and vector stores differ beyond them."""


@dataclass(slots=True)
class Candidate:
    """An item with its payload. ``shares`` add up to its score; ``found`` holds its places in the rankings."""

    id: str
    payload: Payload
    shares: dict[str, float] = field(default_factory=dict[str, float])
    found: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def score(self) -> float:
        return sum(self.shares.values())

    @property
    def text(self) -> str:
        return str(self.payload["memory"])

    @property
    def place(self) -> int | None:
        """The place in its conversation; None for an item stored without one."""
        place = self.payload.get("place")
        return place if isinstance(place, int) else None

    @property
    def speaker(self) -> frozenset[str]:
        """The words of the speaker's name, folded."""
        words = self.payload.get("speaker")
        return frozenset(str(word) for word in words) if isinstance(words, list) else frozenset()

    @property
    def feedback(self) -> Feedback | None:
        return feedback_in(self.payload)

    @property
    def times(self) -> tuple[NamedTime, ...]:
        return _TIMES.validate_python(self.payload.get("times", ()))

    @property
    def said_at(self) -> datetime:
        """Event time."""
        moment = datetime.fromisoformat(str(self.payload["valid_from"]))
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def feedback_in(payload: Payload) -> Feedback | None:
    """Returns the verdict that a stored memory carries."""
    stored = payload.get("feedback")
    return Feedback.model_validate(stored) if stored is not None else None


_UNITS: Final = 10**DECIMALS
"""Scores are compared in whole units of their last decimal that counts; rounding a number takes five times as long."""


class Relevance:
    """Both rankings of a namespace. An item that the dense one lacks counts as its last, one without words as 0.

    Only the first ``limit`` of each count. A dense ranking without more holds everything that can be seen.
    """

    def __init__(
        self, dense: Sequence[Ranked], sparse: Sequence[Ranked], tuning: Tuning, *, limit: int | None = None
    ) -> None:
        self._everything = dense if limit is not None and 0 < len(dense) <= limit else None
        dense, sparse = dense[:limit], sparse[:limit]
        self._tuning = tuning
        self._dense = {one.id: one.score for one in dense}
        self._sparse = {one.id: one.score for one in sparse}
        self._floor = floor = min(self._dense.values(), default=0.0)
        above = {one: tuning.dense * (score - floor) for one, score in self._dense.items()}
        for one, score in self._sparse.items():
            above[one] = above.get(one, 0.0) + tuning.sparse * score
        self.above_floor: Mapping[str, float] = above
        """How much more relevant each item is than the last one of the dense ranking without a common word."""

    def shares(self, item_id: str) -> dict[str, float]:
        """Returns the parts that add up to the item's relevance."""
        shares = {"dense": self._tuning.dense * self._dense.get(item_id, self._floor)}
        if item_id in self._sparse:
            shares["sparse"] = self._tuning.sparse * self._sparse[item_id]
        return shares

    def found(self, item_id: str) -> dict[str, float]:
        """Returns the item's place and score in each ranking that has it."""
        found: dict[str, float] = {}
        for name, scores in (("dense", self._dense), ("sparse", self._sparse)):
            if item_id in scores:
                found |= {f"{name}_rank": self._ranks[name][item_id], f"{name}_score": scores[item_id]}
        return found

    def placed(self, spans: Sequence[tuple[int, int]]) -> Sequence[Placed] | None:
        """Returns the items in the spans by place; None where the vector store has to be asked for them."""
        if self._everything is None or any(one.place is None for one in self._everything):
            return None
        every = sorted((one.place or 0, one.id) for one in self._everything)
        starts = [place for place, _ in every]
        parts = (every[bisect_left(starts, start) : bisect_right(starts, end)] for start, end in spans)
        return [Placed(item_id, place) for part in parts for place, item_id in part]

    def best(self, count: int, *, raised: Mapping[str, float]) -> list[str]:
        """Returns the ids of the most relevant items, best first. ``raised`` adds to some, of any ranking or none."""
        above = {**dict.fromkeys(raised, 0.0), **self.above_floor}
        more = raised.get
        values = [((0.5 - (value + more(one, 0.0)) * _UNITS) // 1, one) for one, value in above.items()]
        values.sort()  # of some hundred items, of which most are wanted: quicker than a heap
        return [item_id for _, item_id in values[:count]]

    @cached_property
    def _ranks(self) -> dict[str, dict[str, float]]:
        return {"dense": _ranks(self._dense), "sparse": _ranks(self._sparse)}


def _ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Returns the place of each, which are in order; equal scores share one."""
    first = dict[float, float]()
    return {one: first.setdefault(round(score, DECIMALS), rank) for rank, (one, score) in enumerate(scores.items(), 1)}


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


_LONGEST: Final = timedelta(days=31)
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def boost(
    candidates: Sequence[Candidate],
    tuning: Tuning,
    *,
    named: Collection[str],
    times: Collection[NamedTime],
    asked_at: datetime,
) -> None:
    """Adds the shares of speaker, date, question mark and feedback.

    ``named``: the words of names in the question; ``times``: those that it names. A question about a time before the
    verdict lowers no outdated memory.
    """
    for one in candidates if named else ():
        if not one.speaker.isdisjoint(named):
            one.shares["speaker"] = tuning.speaker
    boost_dates(candidates, times, tuning.date)
    for one in candidates:
        # A turn that asks repeats the words of the question and does not answer it
        if tuning.asking and one.text.rstrip().endswith(_QUESTION_MARKS):
            one.shares["asking"] = -tuning.asking
        if (feedback := one.feedback) is None:
            continue
        if feedback.verdict == "helpful" and tuning.helpful:
            one.shares["helpful"] = tuning.helpful
        if feedback.verdict == "outdated" and tuning.outdated and feedback.at <= asked_at:
            one.shares["outdated"] = -tuning.outdated


def boost_dates(candidates: Sequence[Candidate], asked: Collection[NamedTime], weight: float) -> None:
    """Boosts memories that name a time, or were said in one, that the question names."""
    for one in candidates if asked and weight else ():
        day = one.said_at.date()
        if any(span.start <= day <= span.end or _names(one, span) for span in asked):
            one.shares["date"] = weight


def _names(one: Candidate, asked: NamedTime) -> bool:
    """Returns whether the memory names a time in the asked one; "since 2019" is in no week."""
    longest = max(_LONGEST, asked.end - asked.start)
    return any(
        time.start <= asked.end and asked.start <= time.end and time.end - time.start <= longest for time in one.times
    )
