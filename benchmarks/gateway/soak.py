"""Sends many requests to one warm process and records its memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from benchmarks.gateway.load import closed_loop
from benchmarks.gateway.servers import Server
from benchmarks.gateway.workload import Level, requests

REQUESTS = 50_000
_CONCURRENCY = 32
_JSON, _STREAMS = 2_000, 500
"""Requests per batch; the resident memory is read after each batch."""


@dataclass(frozen=True, slots=True)
class Soak:
    """The number of answers, of failed ones, and the resident memory after each batch, in MB."""

    requests: int
    failures: int
    rss_mb: Sequence[float]

    @property
    def slope_percent(self) -> float:
        """Return the growth of the memory's trend over the last half of the run, in percent of its mean there."""
        half = self.rss_mb[len(self.rss_mb) // 2 :]
        mean = sum(half) / len(half)
        middle = (len(half) - 1) / 2
        spread = sum((place - middle) ** 2 for place in range(len(half)))
        trend = sum((place - middle) * (value - mean) for place, value in enumerate(half)) / spread if spread else 0.0
        return round(100 * trend * (len(half) - 1) / mean, 3)


async def soak(server: Server, *, total: int = REQUESTS) -> Soak:
    """Send at least ``total`` requests, memory off: four JSON answers for each stream."""
    whole = requests(Level("json", _CONCURRENCY, _JSON), memory=False)
    streams = requests(Level("stream", _CONCURRENCY, _STREAMS), memory=False)
    share = _JSON // _STREAMS
    batch = list(chain.from_iterable((*whole[n * share : (n + 1) * share], one) for n, one in enumerate(streams)))
    answered, failures, series = 0, 0, list[float]()
    while answered < total:
        load = await closed_loop(server.port, batch, concurrency=_CONCURRENCY)
        answered += len(load.answers)
        failures += load.failures(events=0)
        series.append(round(server.rss_mb(), 2))
    return Soak(answered, failures, series)
