"""The weights of a search. Tuned on one set of dialogues, chosen on a second, reported on a third."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Weights of a search; 0 switches a boost off.

    ``rank_constant``: how slowly a ranking's share falls with the rank. ``dense_weight``: the dense ranking's part of
    the two. ``neighbours``: the part of its neighbour's score that a raw turn gets. ``date``: added where the question
    names a time. ``diversity``: the cost of likeness to a better hit.
    """

    rank_constant: float = 2.0
    dense_weight: float = 0.6
    neighbours: float = 0.3
    date: float = 0.3
    diversity: float = 0.15


PLAIN = Tuning(dense_weight=0.5, neighbours=0.0, date=0.0, diversity=0.0)
"""Reciprocal rank fusion with Qdrant's constant, and nothing else."""
