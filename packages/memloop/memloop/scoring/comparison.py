"""Compares a candidate with an incumbent on the same rows: the trainer's gate and the scorecards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from memloop.scoring.intervals import paired_bootstrap, paired_interval, wilson


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
