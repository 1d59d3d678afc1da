"""Compares a candidate with an incumbent on the same rows, by intervals: the trainer's gate and the scorecards."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import fmean

_RESAMPLES = 2000
Z_95 = 1.96
"""The normal distribution's 97.5 % quantile: both ends of a 95 % interval."""


def wilson(share: float, count: int, *, z: float = Z_95) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (0 to 1) of ``count`` independent trials; all of it without trials."""
    if not count:
        return 0.0, 1.0
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))  # rounded sums may leave it out


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


def paired_bootstrap(differences: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean of differences, over samples drawn from them with replacement.

    It has no width where all differences are equal. Raises ValueError without differences.
    """
    if not differences:
        raise ValueError("the mean of no differences is undefined")
    if len(set(differences)) == 1:
        return differences[0], differences[0]
    rng = random.Random(seed)
    means = sorted(fmean(rng.choices(differences, k=len(differences))) for _ in range(_RESAMPLES))
    cut = round(0.025 * _RESAMPLES)
    return means[cut], means[-1 - cut]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile; ``percent`` is from 0 to 100. Raises IndexError without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One score. Means are 0 to 1 with Wilson's 95 % interval, ``gain`` is the mean difference with its own.

    ``better`` and ``worse`` count the rows on which the candidate scored more and less. The gain's interval holds the
    paired bootstrap's and Bonett and Price's: the first knows the scores' distribution, the second keeps a width where
    two models agree on a handful of rows.
    """

    score: str
    rows: int
    candidate: float
    candidate_interval: tuple[float, float]
    incumbent: float
    incumbent_interval: tuple[float, float]
    gain: float
    gain_interval: tuple[float, float]
    better: int
    worse: int

    def passes(self, margin: float) -> bool:
        """Return whether the candidate, with confidence, loses less than ``margin`` (0 to 1) to the incumbent."""
        return self.gain_interval[0] > -margin


def compare(score: str, pairs: Sequence[tuple[float, float]]) -> Comparison:
    """Compare (candidate, incumbent) pairs, one for each row. Raises ValueError without rows."""
    if not pairs:
        raise ValueError("nothing was measured")
    differences = [mine - theirs for mine, theirs in pairs]
    intervals = paired_interval(differences), paired_bootstrap(differences)
    candidate, incumbent = fmean(mine for mine, _ in pairs), fmean(theirs for _, theirs in pairs)
    return Comparison(
        score=score,
        rows=len(pairs),
        candidate=candidate,
        candidate_interval=wilson(candidate, len(pairs)),
        incumbent=incumbent,
        incumbent_interval=wilson(incumbent, len(pairs)),
        gain=fmean(differences),
        gain_interval=(min(low for low, _ in intervals), max(high for _, high in intervals)),
        better=sum(each > 0 for each in differences),
        worse=sum(each < 0 for each in differences),
    )


def compare_all(candidate: Sequence[Mapping[str, float]], incumbent: Sequence[Mapping[str, float]]) -> list[Comparison]:
    """Compare each score; both models have the same rows in the same order."""
    names = candidate[0]
    return [
        compare(name, [(mine[name], theirs[name]) for mine, theirs in zip(candidate, incumbent, strict=True)])
        for name in names
    ]
