"""Computes an item's own relevance: its cosine and its BM25 score on one scale.

Scores are added, not their ranks: the distance between the first and the second matters. A fixed scale needs no
statistics over the namespace, so a ranking may be cut short.
"""

from collections.abc import Iterable, Mapping, Sequence

from memory_store.retrieval.candidates import DECIMALS
from memory_store.retrieval.tuning import Tuning
from memory_store.vectors.port import Ranked


class Relevance:
    """Both rankings of a namespace. An item that the dense one lacks counts as its last, one without words as 0."""

    def __init__(self, dense: Sequence[Ranked], sparse: Sequence[Ranked], tuning: Tuning) -> None:
        self._tuning = tuning
        self._dense = {one.id: one.score for one in dense}
        self._sparse = {one.id: one.score for one in sparse}
        self._ranks = {"dense": _ranks(dense), "sparse": _ranks(sparse)}
        self._floor = min(self._dense.values(), default=0.0)
        self._above = {one: self._above_floor(one) for one in {**self._dense, **self._sparse}}

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

    def above_floor(self, item_id: str) -> float:
        """Returns how much more relevant the item is than the last one of the dense ranking without a common word."""
        return self._above.get(item_id, 0.0)

    def _above_floor(self, item_id: str) -> float:
        dense = self._dense.get(item_id, self._floor) - self._floor
        return self._tuning.dense * dense + self._tuning.sparse * self._sparse.get(item_id, 0.0)

    def best(self, count: int, *, raised: Mapping[str, float], known: Iterable[str] = ()) -> list[str]:
        """Returns the ids of the most relevant items, best first. ``raised`` adds to some; ``known`` compete too."""
        above = {**dict.fromkeys(known, 0.0), **self._above}
        values = [(-round(value + raised.get(one, 0.0), DECIMALS), one) for one, value in above.items()]
        values.sort()  # of some hundred items, of which most are wanted: quicker than a heap
        return [item_id for _, item_id in values[:count]]


def _ranks(ranking: Sequence[Ranked]) -> dict[str, float]:
    """Returns the place of each; equal scores share one."""
    first = dict[float, float]()
    return {one.id: first.setdefault(round(one.score, DECIMALS), rank) for rank, one in enumerate(ranking, 1)}
