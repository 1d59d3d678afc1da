"""Runs every level against every target and prints the tables. Run: ``make bench-gateway``."""

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import uvloop
from rich.console import Console
from rich.table import Table
from yarl import URL

from benchmarks.gateway import results, servers
from benchmarks.gateway.plot import draw
from benchmarks.gateway.results import DIRECT, LITELLM, OFF, ON, PLAIN, Goal, Row, Rows
from benchmarks.gateway.soak import soak
from benchmarks.gateway.target import Target, measured
from benchmarks.gateway.workload import ENGINE_LATENCY_S, LEVELS, remember
from benchmarks.mock_engine import mock_engine

PEER = Path(".venv-bench/bin/litellm")
PLOT = Path(".memloop/benchmarks-gateway.svg")


@dataclass(frozen=True, slots=True)
class Peer:
    """LiteLLM's part in a run: its target, or the reason for its absence."""

    target: Target | None
    problem: str | None = None
    version: str | None = None


async def run(targets: Sequence[Target], store: servers.Server, console: Console) -> list[Row]:
    """Measure level by level, all targets in turn, so that a slow minute of the machine affects them alike."""
    await remember(f"http://127.0.0.1:{store.port}")
    rows: list[Row] = []
    for level in LEVELS:
        for target in targets:
            rows.append(await measured(target, level))
            console.print(f"[dim]{level.kind} at {level.concurrency}: {target.name} done[/dim]")
    return rows


def peer(stack: ExitStack, engine_url: str, folder: Path) -> Peer:
    """Start LiteLLM's proxy if it is available."""
    if not PEER.is_file():
        return Peer(None, f"LiteLLM is not installed ({PEER.parent.parent} could not be made)")
    try:
        server = stack.enter_context(servers.litellm_proxy(PEER.absolute(), engine_url=engine_url, folder=folder))
    except servers.ServerError as error:
        return Peer(None, str(error), _peer_version())
    return Peer(Target(LITELLM, server.port, {"litellm": server}), version=_peer_version())


def _peer_version() -> str | None:
    found = next(PEER.parent.parent.glob("lib/*/site-packages/litellm-[0-9]*.dist-info"), None)
    return found.name.removesuffix(".dist-info") if found else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the servers, measure, stop them, print. The last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("--plot", type=Path, default=PLOT, help="path of the figure, an SVG")
    plot: Path = parser.parse_args(arguments).plot
    console = Console(width=150)
    load_before = os.getloadavg()[0]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memloop-bench-")))
        engine_url = stack.enter_context(mock_engine(latency_s=ENGINE_LATENCY_S))
        redis = stack.enter_context(servers.redis_server(folder))
        store = stack.enter_context(servers.memory_store(redis=redis, folder=folder))
        gateway = stack.enter_context(servers.gateway(engine_url=engine_url, redis=redis, store=store))
        worker = stack.enter_context(servers.worker(engine_url=engine_url, redis=redis, store=store))
        plain = stack.enter_context(servers.plain_proxy(engine_url=engine_url))
        beside = peer(stack, engine_url, folder)
        targets = [
            Target(DIRECT, URL(engine_url).port or 0),
            Target(PLAIN, plain.port, {"plain": plain}),
            Target(OFF, gateway.port, {"gateway": gateway}),
            Target(ON, gateway.port, _named_servers(gateway, store, redis, worker), memory=True),
            *([beside.target] if beside.target else []),
        ]
        rows = uvloop.run(run(targets, store, console))
        soaked = uvloop.run(soak(gateway))
    figures = Rows(rows, soaked).figures()
    met = list(results.goals(figures))
    draw(rows, plot)
    show(console, rows, met, beside)
    line = summary(rows, figures, met, beside) | {"load_before": round(load_before, 2), "soak": asdict(soaked)}
    print(orjson.dumps(line).decode())


def _named_servers(*processes: servers.Server) -> dict[str, servers.Server]:
    return {server.name: server for server in processes}


def summary(
    rows: Sequence[Row], figures: Mapping[str, float | None], met: Sequence[Goal], beside: Peer
) -> dict[str, object]:
    """Build the last line."""
    return {
        "benchmark": "gateway",
        **figures,
        "added_at_concurrency": results.ADDED_AT,
        "goals": {goal.name: goal.verdict for goal in met},
        "peer_version": beside.version,
        "peer_problem": beside.problem,
        "cores": os.cpu_count(),
        "failures": sum(row.failures for row in rows),
        "rows": [asdict(row) for row in rows],
    }


def show(console: Console, rows: Sequence[Row], met: Sequence[Goal], beside: Peer) -> None:
    """Print the tables."""
    found = Rows(rows)
    table = Table("load", "at", "target", "req/s", "p50 ms", "p99 ms", "+p50", "+p99", "first byte", "CPU ms", "MB")
    for row in rows:
        added = (found.added(row.target, row.kind, row.concurrency, percent) for percent in (50, 99))
        times = (row.per_second, row.p50_ms, row.p99_ms, *added, row.first_p50_ms)
        costs = (_named(row.cpu_ms), _named(row.rss_mb))
        table.add_row(row.kind, str(row.concurrency), row.target, *(f"{time}" for time in times), *costs)
    console.print(table)
    verdicts = Table("figure", "measured", "goal", "")
    for goal in met:
        bound = f"{'at least' if goal.at_least else 'at most'} {goal.bound:g}"
        verdicts.add_row(goal.name, str(goal.value), bound, goal.verdict)
    console.print(verdicts)
    if beside.problem:
        console.print(f"No peer in this run: {beside.problem}")


def _named(values: Mapping[str, float]) -> str:
    return " ".join(f"{name} {value:g}" for name, value in values.items())


if __name__ == "__main__":
    main()
