"""Compares two policies on the same documents: shares with intervals, and the difference with its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from memloop.scoring.comparison import paired_interval, wilson


@dataclass(frozen=True, slots=True)
class Share:
    """A share of right answers in percent, with Wilson's 95 % interval."""

    percent: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, right: Sequence[bool]) -> "Share":
        """Return the share of true values."""
        share = sum(right) / max(1, len(right))
        low, high = wilson(share, len(right))
        return cls(round(100 * share, 2), round(100 * low, 2), round(100 * high, 2), len(right))


@dataclass(frozen=True, slots=True)
class Gain:
    """Percentage points, with a 95 % interval."""

    points: float
    low: float
    high: float


def paired_gain(before: Sequence[bool], after: Sequence[bool]) -> Gain:
    """Return the gain of the second answers over the first, both to the same documents."""
    differences = [float(late) - float(early) for early, late in zip(before, after, strict=True)]
    return Gain(*(round(100 * each, 2) for each in (fmean(differences), *paired_interval(differences))))


def drop(short: Sequence[bool], long: Sequence[bool]) -> Gain:
    """Return the loss on longer, hence other, documents: the difference of two shares (Newcombe's hybrid interval)."""
    shares = [sum(each) / len(each) for each in (short, long)]
    (short_low, short_high), (long_low, long_high) = (
        wilson(share, len(each)) for share, each in zip(shares, (short, long), strict=True)
    )
    lost = shares[0] - shares[1]
    low = lost - sqrt((shares[0] - short_low) ** 2 + (long_high - shares[1]) ** 2)
    high = lost + sqrt((short_high - shares[0]) ** 2 + (shares[1] - long_low) ** 2)
    return Gain(*(round(100 * each, 2) for each in (lost, low, high)))
