"""What two policies scored on the same documents: shares with intervals, and the difference with its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from memloop.scoring.intervals import wilson

Z = 1.96
"""Of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of right answers in percent, with Wilson's 95 % interval."""

    percent: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, right: Sequence[bool]) -> "Share":
        """The share of the true ones."""
        share = sum(right) / max(1, len(right))
        low, high = wilson(share, len(right))
        return cls(round(100 * share, 2), round(100 * low, 2), round(100 * high, 2), len(right))


@dataclass(frozen=True, slots=True)
class Gain:
    """Percentage points, with a 95 % interval."""

    points: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def paired_gain(before: Sequence[bool], after: Sequence[bool]) -> Gain:
    """What the second answers have more of, both to the same documents.

    The interval is the normal one of the mean of differences.
    """
    differences = [int(late) - int(early) for early, late in zip(before, after, strict=True)]
    count = len(differences)
    mean = sum(differences) / count
    deviation = sqrt(sum((each - mean) ** 2 for each in differences) / max(1, count - 1))
    half = Z * deviation / sqrt(count)
    return Gain(*(round(100 * each, 2) for each in (mean, mean - half, mean + half)))


def drop(short: Sequence[bool], long: Sequence[bool]) -> Gain:
    """What the longer documents lose: other documents, so the difference of two shares (Newcombe's hybrid interval)."""
    shares = [sum(each) / len(each) for each in (short, long)]
    (short_low, short_high), (long_low, long_high) = (
        wilson(share, len(each)) for share, each in zip(shares, (short, long), strict=True)
    )
    lost = shares[0] - shares[1]
    low = lost - sqrt((shares[0] - short_low) ** 2 + (long_high - shares[1]) ** 2)
    high = lost + sqrt((short_high - shares[0]) ** 2 + (shares[1] - long_low) ** 2)
    return Gain(*(round(100 * each, 2) for each in (lost, low, high)))
