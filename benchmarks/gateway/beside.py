"""Compares what a chat costs the gateway of another checkout and of this one, in turn, on one machine.

Run: ``make bench-beside OTHER=FOLDER``. The folder is a checkout of another commit, set up by its ``make setup``. Each
side has its own gateway, worker, store and Redis; both share the engine. Two runs of ``make bench-gateway`` differ by
more than most changes do. Here every round measures both sides, one right after the other. How fast a process runs
also depends on its hash seed and its addresses: the same code costs up to a fifth more in another start. So both sides
are started several times, as pyperf does. Each start gives the ratio of the sides' medians, this checkout's cost by the
other's; the figure is the median of these ratios.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final, TypeAlias

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.gateway import servers
from benchmarks.gateway.cost import cost_ms
from benchmarks.gateway.workload import STREAMS, Kind, Level, requests
from benchmarks.mock_engine import STREAM_EVENTS, mock_engine

GOAL: Final = 1.05
"""At most so many times the other checkout's cost."""
CASES: Final[Sequence[tuple[Kind, int]]] = (
    ("json", 1),
    ("json", 16),
    ("stream", 1),
    ("stream", 16),
    ("stream_paced", 4),
)
"""Loads and their concurrency, each with memory off and on."""
_ENGINE_LATENCY_S: Final = 0.005
_PYTHON: Final = Path(".venv/bin/python")
_REMEMBER: Final = (
    "import asyncio, sys; from benchmarks.gateway.workload import remember; asyncio.run(remember(sys.argv[1]))"
)


Start: TypeAlias = dict[str, tuple[float, float]]
"""CPU milliseconds per request on the other side and on this one, by load, in one start of both."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One load on both sides: medians of CPU milliseconds per request, and quartiles of the starts' ratios."""

    load: str
    other_ms: float
    this_ms: float
    ratio: float
    lower: float
    upper: float


def gateway_of(checkout: Path, stack: ExitStack, folder: Path, *, engine_url: str) -> servers.Server:
    """Start the processes of the checkout, store the memories of every user of the workload, return the gateway."""
    folder.mkdir()
    python = checkout / _PYTHON
    redis = stack.enter_context(servers.redis_server(folder))
    store = stack.enter_context(servers.memory_store(redis=redis, folder=folder, python=python))
    gateway = stack.enter_context(servers.gateway(engine_url=engine_url, redis=redis, store=store, python=python))
    stack.enter_context(servers.worker(engine_url=engine_url, redis=redis, store=store, python=python))
    # The checkout's own code stores them: what a store takes changes between commits.
    subprocess.run((python, "-c", _REMEMBER, f"http://127.0.0.1:{store.port}"), cwd=checkout, check=True)
    return gateway


async def run(other: servers.Server, this: servers.Server, *, rounds: int, count: int) -> Start:
    """Measure every load on both sides in turn; the side that goes first changes with each round."""
    found: Start = {}
    for memory, (kind, concurrency) in product((False, True), CASES):
        asked = requests(Level(kind, concurrency, count), memory=memory)
        events = STREAM_EVENTS if kind in STREAMS else 0
        costs: dict[servers.Server, list[float]] = {other: [], this: []}
        for number in range(rounds):
            for one in (other, this) if number % 2 else (this, other):
                costs[one].append(await cost_ms(one, asked, concurrency=concurrency, events=events))
        name = f"{kind} at {concurrency}, memory {'on' if memory else 'off'}"
        found[name] = (statistics.median(costs[other]), statistics.median(costs[this]))
    return found


def started(checkout: Path, *, rounds: int, count: int) -> Start:
    """Start both sides, measure, stop them."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memloop-bench-")))
        engine_url = stack.enter_context(mock_engine(latency_s=_ENGINE_LATENCY_S))
        other = gateway_of(checkout, stack, folder / "other", engine_url=engine_url)
        this = gateway_of(Path.cwd(), stack, folder / "this", engine_url=engine_url)
        return uvloop.run(run(other, this, rounds=rounds, count=count))


def compared(starts: Sequence[Start]) -> list[Compared]:
    """Return each load's medians over the starts, and the quartiles of the starts' ratios."""
    return [_compared(load, [start[load] for start in starts]) for load in starts[0]]


def _compared(load: str, costs_ms: Sequence[tuple[float, float]]) -> Compared:
    ratios = [this / other for other, this in costs_ms]
    lower, middle, upper = (round(ratio, 3) for ratio in statistics.quantiles(ratios, n=4, method="inclusive"))
    other, this = (round(statistics.median(side), 3) for side in zip(*costs_ms, strict=True))
    return Compared(load, other, this, middle, lower, upper)


def show(found: Sequence[Compared]) -> None:
    """Print the table and, as the last line, one JSON object."""
    table = Table("load", "other, CPU ms", "this, CPU ms", "this / other", "quartiles")
    for row in found:
        quartiles = f"{row.lower:.2f} to {row.upper:.2f}"
        table.add_row(row.load, f"{row.other_ms:g}", f"{row.this_ms:g}", f"{row.ratio:.2f}", quartiles)
    Console(width=120).print(table)
    met = all(row.ratio <= GOAL for row in found)
    line = {"benchmark": "gateway_beside", "rows": [asdict(row) for row in found], "goal": GOAL, "met": met}
    print(orjson.dumps(line).decode())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each start, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway.beside", description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of another commit, after its `make setup`")
    parser.add_argument("--starts", type=_several, default=7)
    parser.add_argument("--rounds", type=int, default=4, help="of each start; in half of them this side goes first")
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args(arguments)
    checkout: Path = options.other.absolute()
    if not (checkout / _PYTHON).is_file():
        parser.error(f"{options.other} has no environment: run `make setup` there first")
    measure = partial(started, checkout, rounds=options.rounds, count=options.requests)
    starts: list[Start] = []
    for number in range(1, options.starts + 1):
        starts.append(measure())
        print(f"start {number} of {options.starts}", file=sys.stderr)
    show(compared(starts))


def _several(text: str) -> int:
    if (count := int(text)) < 2:
        raise argparse.ArgumentTypeError("quartiles need two starts")
    return count


if __name__ == "__main__":
    main()
