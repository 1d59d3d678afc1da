"""Measures searches and adds at three sizes: ours through the gateway, mem0, and the floor, round by
round in one run.
"""

import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.gateway import servers
from benchmarks.gateway.workload import TENANT
from benchmarks.memory.corpus import SIZES, USERS, fact, question, user_of, vectors
from benchmarks.memory.floor import Floor, LibraryEncoder
from benchmarks.memory.loading import load
from benchmarks.memory.peers import Asked, Mem0, Ours, mem0
from benchmarks.mock_engine import mock_engine
from memloop.scoring.comparison import percentile
from memory_store.embedding.port import Encoder
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from memory_store.models.chosen import encoder_of
from memory_store.settings import Settings

ROUNDS = 5
PER_ROUND = 20
_MEM0_SLOW_MS = 200.0
_MEM0_SLOW_PER_ROUND = 3
ADDS, ADD_CLIENTS = 1_000, 32
BATCHES, BATCH, BATCH_CLIENTS = 10, 200, 2
MEM0_ADDS = 200
_ADD_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Searches:
    """Milliseconds of single searches at one size; ``None`` for a peer skipped for lack of time."""

    size: str
    ours: Sequence[float]
    floor: Sequence[float]
    library_floor: Sequence[float]
    mem0: Sequence[float] | None

    def figures(self) -> dict[str, float | None]:
        """Return the ratios of medians, and our median in milliseconds."""
        return {
            f"search_p50_ms_{self.size}": round(percentile(self.ours, 50), 2),
            f"search_floor_ratio_{self.size}": self._over(self.floor),
            f"search_library_floor_ratio_{self.size}": self._over(self.library_floor),
            f"search_vs_mem0_{self.size}": None if self.mem0 is None else self._over(self.mem0),
        }

    def _over(self, others: Sequence[float]) -> float:
        return round(percentile(self.ours, 50) / percentile(others, 50), 3)


@dataclass(frozen=True, slots=True)
class Adds:
    """Items per second; ``encoder`` counts texts that our encoder alone embeds, with the store's number of threads."""

    encoder: float
    single: float
    batch: float
    mem0_single: float
    mem0_batch: float

    def figures(self) -> dict[str, float | None]:
        """Return our rates over mem0's and over the encoder's."""
        return {
            "add_vs_encoder": round(self.single / self.encoder, 3),
            "add_batch_vs_encoder": round(self.batch / self.encoder, 3),
            "add_vs_mem0": round(self.single / self.mem0_single, 2),
            "add_batch_vs_mem0": round(self.batch / self.mem0_batch, 2),
        }


@dataclass(frozen=True, slots=True)
class Speed:
    """The results of a run."""

    searches: Sequence[Searches]
    adds: Adds
    seconds: dict[str, float]


class Clock:
    """Prints durations and tracks the budget."""

    def __init__(self, budget_s: float) -> None:
        self._began = time.monotonic()
        self._budget_s = budget_s
        self.seconds: dict[str, float] = {}

    @property
    def left_s(self) -> float:
        """Return the remaining seconds of the budget."""
        return self._budget_s - (time.monotonic() - self._began)

    @contextmanager
    def timed(self, name: str) -> Generator[None]:
        """Print the seconds of the block."""
        began = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - began, 1)


async def run(sizes: Sequence[str], *, budget_s: float) -> Speed:
    """Run the measurements. mem0 is skipped at a size that the budget has no time to load."""
    clock = Clock(budget_s)
    encoder = encoder_of(Settings(), DEFAULT_MODEL)
    with tempfile.TemporaryDirectory(prefix="memloop-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        library = LibraryEncoder(DEFAULT_MODEL)
        with clock.timed("embed"):
            rows = vectors(encoder, max(SIZES[size] for size in sizes))
        np.save(folder / "vectors.npy", rows)
        floor = Floor(folder / "floor", dimension=rows.shape[1])
        stack.callback(floor.close)
        peer = stack.enter_context(mem0(folder / "mem0", folder / "vectors.npy"))
        searches: list[Searches] = []
        adds: Adds | None = None
        for size in sizes:
            with clock.timed(f"load_ours_{size}"):
                await load(folder / size / "edge", rows[: SIZES[size]], tenant=TENANT)
            floor.grow(rows[: SIZES[size]])
            beside = _grown(peer, size, clock)
            with stack_of(folder / size) as ours:
                searches.append(await _searched(size, ours, floor, (encoder, library), beside))
                adds = adds or await _added(ours, peer, encoder)
    if adds is None:
        raise ValueError("no size was asked for")
    return Speed(searches, adds, clock.seconds)


_MEM0_ROWS_PER_S = 500


def _grown(peer: Mem0, size: str, clock: Clock) -> Mem0 | None:
    if SIZES[size] / _MEM0_ROWS_PER_S > clock.left_s:
        return None
    with clock.timed(f"load_mem0_{size}"):
        peer.grow(SIZES[size])
    return peer


@contextmanager
def stack_of(folder: Path) -> Generator[Ours]:
    """Run our processes over a loaded folder: Redis, store, gateway, worker."""
    with ExitStack() as stack:
        engine_url = stack.enter_context(mock_engine(latency_s=0.005))
        redis = stack.enter_context(servers.redis_server(folder))
        store = stack.enter_context(servers.memory_store(redis=redis, folder=folder))
        gateway = stack.enter_context(servers.gateway(engine_url=engine_url, redis=redis, store=store))
        stack.enter_context(servers.worker(engine_url=engine_url, redis=redis, store=store))
        yield Ours(gateway.port)


async def _searched(
    size: str, ours: Ours, floor: Floor, encoders: tuple[Encoder, LibraryEncoder], peer: Mem0 | None
) -> Searches:
    """Search in rounds of all in turn, so that a slow minute of the machine affects them alike; the first warms up."""
    found: dict[str, list[float]] = {"ours": [], "floor": [], "library_floor": [], "mem0": []}
    encoder, library = encoders
    mem0_count = PER_ROUND
    for turn in range(ROUNDS + 1):
        asked = _questions(turn, SIZES[size])
        times = {
            "library_floor": floor.search_ms(asked, library),
            "floor": floor.search_ms(asked, encoder),
            "ours": await ours.search_ms(asked),
        }
        if peer is not None:
            times["mem0"] = peer.search_ms(asked[:mem0_count])
            mem0_count = _MEM0_SLOW_PER_ROUND if percentile(times["mem0"], 50) > _MEM0_SLOW_MS else PER_ROUND
        if turn:
            for name, values in times.items():
                found[name] += values
    return Searches(size, found["ours"], found["floor"], found["library_floor"], found["mem0"] if peer else None)


def _questions(turn: int, count: int) -> list[Asked]:
    numbers = range(turn * PER_ROUND, (turn + 1) * PER_ROUND)
    return [(user_of(number * 37 % count), question(number)) for number in numbers]


async def _added(ours: Ours, peer: Mem0, encoder: Encoder) -> Adds:
    """Add in rounds of all in turn; each text is added once."""
    seconds = {"encoder": 0.0, "single": 0.0, "batch": 0.0, "mem0": 0.0, "mem0_batch": 0.0}
    for turn in range(_ADD_ROUNDS + 1):
        fresh = iter(range(10_000_000 + turn * 100_000, 10_000_000 + (turn + 1) * 100_000))
        batches = [_facts(fresh, BATCH) for _ in range(BATCHES)]
        took = {
            "encoder": _encoded_s(encoder, [text for _, text in _facts(fresh, BATCH)]),
            "single": await ours.add_s(_facts(fresh, ADDS), concurrency=ADD_CLIENTS),
            "mem0": peer.add_s(_facts(fresh, MEM0_ADDS)),
            "batch": await ours.add_batch_s(batches, concurrency=BATCH_CLIENTS),
            "mem0_batch": peer.add_batch_s(_facts(fresh, MEM0_ADDS)),
        }
        if turn:
            for name, value in took.items():
                seconds[name] += value
    return Adds(
        encoder=_ADD_ROUNDS * BATCH / seconds["encoder"],
        single=_ADD_ROUNDS * ADDS / seconds["single"],
        batch=_ADD_ROUNDS * BATCHES * BATCH / seconds["batch"],
        mem0_single=_ADD_ROUNDS * MEM0_ADDS / seconds["mem0"],
        mem0_batch=_ADD_ROUNDS * MEM0_ADDS / seconds["mem0_batch"],
    )


def _encoded_s(encoder: Encoder, texts: Sequence[str]) -> float:
    began = time.perf_counter()
    encoder.encode(texts)
    return time.perf_counter() - began


def _facts(numbers: Iterator[int], count: int) -> list[Asked]:
    return [(f"adder-{number % USERS}", fact(number)) for number in islice(numbers, count)]
