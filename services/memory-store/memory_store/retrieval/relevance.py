"""Computes an item's own relevance: its cosine and its BM25 score on one scale.

Scores are added, not their ranks: the distance between the first and the second matters. A fixed scale needs no
statistics over the namespace, so a ranking may be cut short.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from memory_store.retrieval.candidates import DECIMALS
from memory_store.retrieval.tuning import Tuning
from memory_store.vectors.port import Placed, Ranked

_UNITS: Final = 10**DECIMALS
"""Scores are compared in whole units of their last decimal that counts; rounding a number takes five times as long."""


class Relevance:
    """Both rankings of a namespace. An item that the dense one lacks counts as its last, one without words as 0.

    Only the first ``limit`` of each count. A dense ranking without more holds everything that can be seen.
    """

    def __init__(
        self,
        dense: Sequence[Ranked],
        sparse: Sequence[Ranked],
        tuning: Tuning,
        *,
        limit: int | None = None,
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
