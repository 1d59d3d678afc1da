"""Measures how the CPU time of a function grows with its input."""

import gc
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

Input = TypeVar("Input")
LINEAR = 2.6
"""Most times the CPU time that twice the input may cost."""
_REPEATS = 3
_ATTEMPTS = 5
_PATIENCE_S = 5.0
_LEAST_S = 0.002
"""The time under which a measurement is noise."""


def is_linear(make: Callable[[int], Input], work: Callable[[Input], object], *, size: int) -> bool:
    """Whether ``size`` costs at most ``LINEAR`` times half of it, which is the quickest of three runs.

    Other load on the machine only ever adds time, and can spoil a measurement, so it is repeated for seconds, without
    a pause, after which a processor is slower; quadratic growth fails every time.
    """
    large, small = make(size), make(size // 2)
    deadline = time.monotonic() + _PATIENCE_S
    with _no_collection():
        attempts = 0
        while attempts < _ATTEMPTS or time.monotonic() < deadline:
            if _one(large, work) <= LINEAR * max(_LEAST_S, seconds(small, work)):
                return True
            attempts += 1
    return False


def seconds(given: Input, work: Callable[[Input], object]) -> float:
    """The CPU time of one run, the quickest of three."""
    return min(_one(given, work) for _ in range(_REPEATS))


def _one(given: Input, work: Callable[[Input], object]) -> float:
    start = time.process_time()
    work(given)
    return time.process_time() - start


@contextmanager
def _no_collection() -> Generator[None]:
    """No pause of the collector: how long it takes depends on what other tests have left in memory."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
