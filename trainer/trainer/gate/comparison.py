"""Computes how many rows the gate's rule needs.

The rule: the lower end of the 95 % interval of the mean difference (candidate − incumbent, row by row) is above
−margin. With a margin of 0 that is a gain outside its confidence interval.
"""

from __future__ import annotations

from memloop.scoring.comparison import compare


def rows_needed(margin: float) -> int:
    """Return the fewest rows on which two models that always agree provably differ by less than ``margin``."""
    rows = 1
    while not _agreeing(rows, margin):
        rows *= 2
    return next(count for count in range(rows // 2, rows + 1) if _agreeing(count, margin))


def _agreeing(rows: int, margin: float) -> bool:
    return rows > 0 and compare("any", [(0.0, 0.0)] * rows).passes(margin)
