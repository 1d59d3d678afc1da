"""How much each trick weighs. Tuned on one set of dialogues, tricks dropped on a second, reported on a third."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Weights of a search; 0 switches a trick off. What showed no gain on dialogues of the second set is off.

    ``rank_constant``: how slowly a ranking's share falls with the rank. ``dense_weight``: the dense
    ranking's part of the two. ``neighbours``: what a raw turn gets of the score of the turn beside it. ``speaker``
    and ``date``: added where the question names who said it, or when. ``recency``: added to the newest where the
    question asks for what holds now. ``parts``: how much a question's parts, ranked by words, add. ``diversity``:
    what likeness to a better hit costs.
    """

    rank_constant: float = 2.0
    dense_weight: float = 0.6
    neighbours: float = 0.3
    speaker: float = 0.0
    date: float = 0.3
    recency: float = 0.0
    parts: float = 0.0
    diversity: float = 0.15


PLAIN = Tuning(dense_weight=0.5, neighbours=0.0, date=0.0, diversity=0.0)
"""Reciprocal rank fusion with Qdrant's constant, and nothing else."""
