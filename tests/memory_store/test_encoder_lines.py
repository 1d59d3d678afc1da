"""In which order texts reach the encoder: long requests are served whole, and none ends later than with turns."""

import asyncio
import threading
from collections.abc import Sequence
from heapq import heappop, heappush

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from memory_store.embedding.embedder import BatchingEmbedder, Turns
from memory_store.embedding.port import Vector
from memory_store.metrics import Metrics
from tests.fakes.processes import PATIENCE_S

_REQUESTS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 60)), min_size=1, max_size=12)
"""(arrival, texts) of each request; one text is encoded in a unit of time."""


def served_whole(requests: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return the time at which each request ends when requests are served in the order of ``Turns``."""
    turns, waiting, ends = Turns(), list[tuple[float, int]](), dict[int, int]()
    left = [texts for _, texts in requests]
    arrivals = sorted(range(len(requests)), key=lambda number: requests[number][0])
    now = 0
    while len(ends) < len(requests):
        while arrivals and requests[arrivals[0]][0] <= now:
            number = arrivals.pop(0)
            heappush(waiting, (turns.enter(left[number]), number))
        now += 1
        if not waiting:
            turns.over()
            continue
        number = waiting[0][1]
        left[number] -= 1
        turns.served(1)
        if not left[number]:
            heappop(waiting)
            ends[number] = now
    return ends


def in_turns(requests: Sequence[tuple[int, int]]) -> dict[int, float]:
    """Return when each request ends if all that wait share the encoder evenly."""
    left, ends, now = dict[int, float](), dict[int, float](), 0.0
    arrivals = sorted(range(len(requests)), key=lambda number: requests[number][0])
    while left or arrivals:
        if not left:
            now = max(now, float(requests[arrivals[0]][0]))
        while arrivals and requests[arrivals[0]][0] <= now:
            number = arrivals.pop(0)
            left[number] = float(requests[number][1])
        until = requests[arrivals[0]][0] - now if arrivals else float("inf")
        step = min(until, min(left.values()) * len(left))
        now += step
        left = {number: texts - step / len(left) for number, texts in left.items()}
        for number in [number for number, texts in left.items() if texts < 1e-9]:
            del left[number]
            ends[number] = now
    return ends


@given(_REQUESTS)
def test_a_request_ends_no_later_than_with_turns(requests: list[tuple[int, int]]) -> None:
    whole, turns = served_whole(requests), in_turns(requests)

    assert all(whole[number] <= turns[number] + 1 + 1e-6 for number in whole)  # one text that is being encoded


def test_of_two_long_requests_one_ends_at_half_time() -> None:
    assert served_whole([(0, 50), (0, 50)]) == {0: 50, 1: 100}


def test_a_short_request_overtakes_a_long_one() -> None:
    assert served_whole([(0, 50), (10, 2)])[1] == 12


class Paced:
    """An encoder that encodes one batch each time it is let."""

    def __init__(self) -> None:
        self.asked, self.let = threading.Semaphore(0), threading.Semaphore(0)
        self.batches: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.batches.append(list(texts))
        self.asked.release()
        self.let.acquire(timeout=PATIENCE_S)
        return [(1.0,)] * len(texts)


async def test_a_long_request_is_encoded_in_batches_between_which_a_short_one_comes() -> None:
    paced = Paced()
    embedder = BatchingEmbedder(lambda: paced, metrics=Metrics(CollectorRegistry()), max_batch=2)
    paced.let.release()
    await embedder.start()
    long = asyncio.create_task(embedder.embed(list("abcdef")))
    for _ in range(2):  # the probe of the start, then the first batch
        assert await asyncio.to_thread(paced.asked.acquire, timeout=PATIENCE_S)
    short = asyncio.create_task(embedder.embed(["g"]))
    await asyncio.sleep(0)
    paced.let.release(8)

    assert await short == [(1.0,)]
    assert len(await long) == 6
    assert paced.batches[1:] == [["a", "b"], ["g", "c"], ["d", "e"], ["f"]]
    await embedder.close()
