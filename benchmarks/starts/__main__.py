"""Measures how long each process of the local stack takes from its start to ready. Run: ``make bench-starts``.

First each process alone, in the order of the stack; then all of them as ``memloop up`` starts them. Seconds and CPU
seconds end at the first ``/readyz`` that returns 200. The last line is one JSON object.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
import psutil

from benchmarks.kept import FOLDER, Cells, machine, show, write_dated
from benchmarks.mock_engine import mock_engine
from inference.process import ChildProcess
from memloop_cli.stack.component import Component
from memloop_cli.stack.local import free_ports, local_stages
from memloop_cli.stack.running import Ready, running_stack

GOAL_S: Final = 10.0
"""The seconds in which each process but the engine is to be ready."""
_FIRST_PORT: Final = 7900
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Start:
    """What one start took; ``cpu_s`` is that of the process and of its children."""

    name: str
    seconds: float
    cpu_s: float
    rss_mb: float


@asynccontextmanager
async def started(component: Component) -> AsyncGenerator[Start]:
    """Run the component inside the context, from ready on."""
    began = time.monotonic()
    child = await ChildProcess.start(component.command, on_line=_ignore, environment=component.environment)
    try:
        async with asyncio.timeout(component.timeout_s):
            while await component.probe() is not None:  # noqa: ASYNC110 - another process, which sends no event
                await asyncio.sleep(_POLL_S)
        yield _measured(component.name, time.monotonic() - began, child.pid)
    finally:
        await child.stop()


def _ignore(_line: str) -> None:
    return None


def _measured(name: str, seconds: float, pid: int) -> Start:
    family = psutil.Process(pid).children(recursive=True)
    cpu = sum(sum(process.cpu_times()[:4]) for process in family)
    rss = sum(process.memory_info().rss for process in family)
    return Start(name, round(seconds, 2), round(cpu, 2), round(rss / 1e6, 1))


async def one_by_one(components: Sequence[Component]) -> list[Start]:
    """Start each while the ones before it, which it needs, do nothing."""
    if not components:
        return []
    async with started(components[0]) as start:
        return [start, *await one_by_one(components[1:])]


async def together(home: Path, environment: Mapping[str, str]) -> Cells:
    """Start the whole stack as ``memloop up`` does; return each process's seconds, and those of all."""
    ready: dict[str, object] = {}

    def report(found: Ready) -> None:
        ready[found.component.name] = round(found.seconds, 2)

    stages = local_stages(home, free_ports(_FIRST_PORT), environment)
    began = time.monotonic()
    async with running_stack(stages, logs=home / "logs", report=report):
        return {**ready, "all": round(time.monotonic() - began, 2)}


async def measure(*, rounds: int, engine: bool) -> tuple[list[Cells], list[Cells]]:
    """Measure ``rounds`` starts of each process, each in a new folder; the best counts for a process alone."""
    alone: list[list[Start]] = []
    at_once: list[Cells] = []
    with nullcontext("") if engine else mock_engine(latency_s=0.0) as url:
        environment = {**os.environ, "MEMLOOP_ENGINE_URL": url}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                stages = local_stages(Path(folder), free_ports(_FIRST_PORT), environment)
                alone.append(await one_by_one([part for stage in stages for part in stage]))
            with tempfile.TemporaryDirectory() as folder:
                at_once.append(await together(Path(folder), environment))
    return [_best(starts) for starts in zip(*alone, strict=True)], at_once


def _best(starts: Sequence[Start]) -> Cells:
    return {
        "process": starts[0].name,
        "seconds": min(start.seconds for start in starts),
        "cpu_s": min(start.cpu_s for start in starts),
        "rss_mb": min(start.rss_mb for start in starts),
    }


def main() -> None:
    """Print two tables and one line of JSON; ``--keep`` writes it to ``benchmarks/results``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", action="store_true", help="the tiny model's vLLM too")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    alone, at_once = asyncio.run(measure(rounds=options.rounds, engine=options.engine))
    show("Each process alone, best of the rounds", alone)
    show("As `memloop up` starts them, seconds", at_once)
    result: Cells = {"goal_s": GOAL_S, "load": os.getloadavg()[0], "alone": alone, "together": at_once}
    if options.keep:
        write_dated(FOLDER / "starts.json", result)
    print(orjson.dumps({"machine": machine(), **result}).decode())


if __name__ == "__main__":
    main()
