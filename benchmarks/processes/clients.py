"""The clients of a measurement: one process at a lower priority than the servers."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeAlias

from benchmarks.gateway.load import closed_loop

Served: TypeAlias = tuple[float, float, int]
"""Answers a second, the median of their milliseconds, and the failures."""
Send: TypeAlias = Callable[[int, Sequence[bytes], int], Served]
"""Sends requests to a port over so many connections."""
NICER: Final = 10


@contextmanager
def clients() -> Generator[Send]:
    """Yield a function that sends requests to a port over so many connections."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=partial(os.nice, NICER)) as process:
        yield lambda port, sent, concurrency: process.submit(_served, port, sent, concurrency).result()


def _served(port: int, sent: Sequence[bytes], concurrency: int) -> Served:
    load = asyncio.run(closed_loop(port, sent, concurrency=concurrency))
    return load.per_second, load.total_ms(50), load.failures(events=0)
