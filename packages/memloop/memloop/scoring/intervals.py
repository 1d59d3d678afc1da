"""How sure a measured share is, and a difference between two that were measured on the same things."""

from collections.abc import Sequence
from math import sqrt

Z_95 = 1.96
"""The normal distribution's 97.5 % quantile: both ends of a 95 % interval."""


def wilson(share: float, count: int, *, z: float = Z_95) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (0 to 1) of ``count`` independent trials; all of it without trials."""
    if not count:
        return 0.0, 1.0
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, centre - half), min(1.0, centre + half)


def paired_interval(differences: Sequence[float], *, z: float = Z_95) -> tuple[float, float]:
    """Return the 95 % interval of the mean of differences (-1 to 1) between two scores of the same thing.

    Bonett and Price (2012): the normal interval with two made-up pairs more, one for each side. Without them two models
    that agree on a handful of questions would be known to be equal. They gave it for right and wrong answers; graded
    scores differ less, so that it is wider than need be.
    """
    count = len(differences) + 2
    mean = sum(differences) / count
    variance = (sum(each * each for each in differences) + 2) / count - mean * mean
    half = z * sqrt(variance / count)
    return max(-1.0, mean - half), min(1.0, mean + half)
