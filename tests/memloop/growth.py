"""Measures how the CPU time of a function grows with its input."""

import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

Input = TypeVar("Input")
LINEAR = 2.6
"""Most times the CPU time that twice the input may cost."""
_REPEATS = 3
_ATTEMPTS = 3
_LEAST_S = 0.002
"""The time under which a measurement is noise."""


def is_linear(make: Callable[[int], Input], work: Callable[[Input], object], *, size: int) -> bool:
    """Whether ``size`` costs at most ``LINEAR`` times half of it, by the median of three runs.

    Other load on the machine can spoil a measurement, so it is repeated; quadratic growth fails all three.
    """
    large, small = make(size), make(size // 2)
    return any(seconds(large, work) <= LINEAR * max(_LEAST_S, seconds(small, work)) for _ in range(_ATTEMPTS))


def seconds(given: Input, work: Callable[[Input], object]) -> float:
    """The CPU time of one run, the median of three."""
    return median(_one(given, work) for _ in range(_REPEATS))


def _one(given: Input, work: Callable[[Input], object]) -> float:
    start = time.process_time()
    work(given)
    return time.process_time() - start
