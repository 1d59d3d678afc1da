"""Compares the figures of ``make bench-gateway`` between another checkout and this one, in turn, on one machine.

Run: ``make bench-beside OTHER=FOLDER``. The folder is a checkout of another commit, set up by its ``make setup``. Each
side has its own gateway, worker, store and Redis; both share the engine. Two runs of ``make bench-gateway`` differ by
more than most changes do. Here every level is measured on both sides, one right after the other. How fast a process
runs also depends on its hash seed and its addresses: the same code costs up to a fifth more in another start. So both
sides are started several times, as pyperf does, and a figure is the median of its starts.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Final, Self, TypeAlias

import orjson
import uvloop
from rich.console import Console
from rich.table import Table
from yarl import URL

from benchmarks.gateway import servers
from benchmarks.gateway.results import DIRECT, OFF, ON, Row, Rows
from benchmarks.gateway.target import Target, measured
from benchmarks.gateway.workload import ENGINE_LATENCY_S, LEVELS
from benchmarks.mock_engine import mock_engine

GOAL: Final = 1.05
"""At most so many times the other checkout's figure."""
_PYTHON: Final = Path(".venv/bin/python")
_REMEMBER: Final = (
    "import asyncio, sys; from benchmarks.gateway.workload import remember; asyncio.run(remember(sys.argv[1]))"
)

Figures: TypeAlias = dict[str, float]
Start: TypeAlias = tuple[Figures, Figures]
"""The figures of the other side and of this one, in one start of both."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The quartiles of a figure over the starts of one side."""

    lower: float
    median: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Return the spread of at least two values."""
        return cls(*(round(value, 3) for value in statistics.quantiles(values, n=4, method="inclusive")))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lower:.2f} to {self.upper:.2f})"


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure on both sides, and this side's median by the other's."""

    figure: str
    other: Spread
    this: Spread
    ratio: float


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


async def run(engine: Target, other: servers.Server, this: servers.Server) -> Start:
    """Measure every level at the engine and on both sides; the side that goes first changes with each level.

    Raises SystemExit when a request fails.
    """
    rows: dict[servers.Server, list[Row]] = {other: [], this: []}
    for number, level in enumerate(LEVELS):
        direct = await measured(engine, level)
        for memory, side in product((False, True), (other, this) if number % 2 else (this, other)):
            target = Target(ON if memory else OFF, side.port, {side.name: side}, memory=memory)
            rows[side] += (direct, await measured(target, level))
    if failures := sum(row.failures for side in rows.values() for row in side):
        raise SystemExit(f"{failures} requests failed")
    return figures(rows[other]), figures(rows[this])


def figures(rows: Sequence[Row]) -> Figures:
    """Return the figures of ``make bench-gateway`` that need no peer."""
    return {name: value for name, value in Rows(rows).figures().items() if value is not None}


def started(checkout: Path) -> Start:
    """Start both sides, measure, stop them."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memloop-bench-")))
        engine_url = stack.enter_context(mock_engine(latency_s=ENGINE_LATENCY_S))
        other = gateway_of(checkout, stack, folder / "other", engine_url=engine_url)
        this = gateway_of(Path.cwd(), stack, folder / "this", engine_url=engine_url)
        return uvloop.run(run(Target(DIRECT, URL(engine_url).port or 0), other, this))


def compared(starts: Sequence[Start]) -> list[Compared]:
    """Compare each figure's medians over the starts."""
    return [_compared(name, [(other[name], this[name]) for other, this in starts]) for name in starts[0][0]]


def _compared(name: str, values: Sequence[tuple[float, float]]) -> Compared:
    other, this = (Spread.of(side) for side in zip(*values, strict=True))
    return Compared(name, other, this, round(this.median / other.median, 3))


def show(found: Sequence[Compared]) -> None:
    """Print the table and, as the last line, one JSON object."""
    table = Table("figure", "other (quartiles)", "this (quartiles)", "this / other")
    for row in found:
        table.add_row(row.figure, str(row.other), str(row.this), f"{row.ratio:.2f}")
    Console(width=120).print(table)
    met = all(row.ratio <= GOAL for row in found)
    line = {"benchmark": "gateway_beside", "rows": [asdict(row) for row in found], "goal": GOAL, "met": met}
    print(orjson.dumps(line).decode())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each start, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway.beside", description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of another commit, after its `make setup`")
    parser.add_argument("--starts", type=_several, default=5, help="of both sides; each takes four minutes")
    options = parser.parse_args(arguments)
    checkout: Path = options.other.absolute()
    if not (checkout / _PYTHON).is_file():
        parser.error(f"{options.other} has no environment: run `make setup` there first")
    starts: list[Start] = []
    for number in range(1, options.starts + 1):
        starts.append(started(checkout))
        print(f"start {number} of {options.starts}", file=sys.stderr)
    show(compared(starts))


def _several(text: str) -> int:
    if (count := int(text)) < 2:
        raise argparse.ArgumentTypeError("quartiles need two starts")
    return count


if __name__ == "__main__":
    main()
