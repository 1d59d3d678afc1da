"""Measures one level of load at one server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.gateway import results
from benchmarks.gateway.load import Load, closed_loop
from benchmarks.gateway.results import Row
from benchmarks.gateway.servers import Server
from benchmarks.gateway.workload import Level, requests

_WARM_UP: Final = 40


@dataclass(frozen=True, slots=True)
class Target:
    """A server under load, and the processes whose CPU time is counted."""

    name: str
    port: int
    processes: Mapping[str, Server] = field(default_factory=dict[str, Server])
    memory: bool = False


async def measured(target: Target, level: Level) -> Row:
    """Measure one level at one target after a warm-up."""
    asked = requests(level, memory=target.memory)
    load, used = await loaded(target.port, asked, concurrency=level.concurrency, processes=target.processes)
    resident = {name: server.rss_mb() for name, server in target.processes.items()}
    return results.row(target.name, level, load, cpu_s=used, rss_mb=resident)


async def loaded(
    port: int, asked: Sequence[bytes], *, concurrency: int, processes: Mapping[str, Server]
) -> tuple[Load, dict[str, float]]:
    """Send the requests after a few that warm the server up. Returns the answers, and each process's CPU seconds."""
    await closed_loop(port, asked[:_WARM_UP], concurrency=concurrency)
    before = {name: server.cpu_s() for name, server in processes.items()}
    load = await closed_loop(port, asked, concurrency=concurrency)
    return load, {name: server.cpu_s() - before[name] for name, server in processes.items()}
