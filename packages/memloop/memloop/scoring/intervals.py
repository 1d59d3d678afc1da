"""How sure a measured share is, and a difference between two that were measured on the same things."""

import random
from collections.abc import Sequence
from math import sqrt
from statistics import fmean

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


def paired_bootstrap(differences: Sequence[float], *, resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean of differences, over samples drawn from them with replacement.

    It has no width where all differences are equal. Raises ValueError without differences.
    """
    if not differences:
        raise ValueError("the mean of no differences is undefined")
    if len(set(differences)) == 1:
        return differences[0], differences[0]
    rng = random.Random(seed)
    means = sorted(fmean(rng.choices(differences, k=len(differences))) for _ in range(resamples))
    cut = round(0.025 * resamples)
    return means[cut], means[-1 - cut]
