"""Measures how many more requests a second two processes of gateway and store serve than one: ``make bench-processes``.

All processes of a program are on one port (``MEMLOOP_PROCESSES``). The clients are one process at a lower priority. The
store searches on the Qdrant server of ``QDRANT_URL``, else on a stand-in that repeats its answers. The last line is one
JSON object.
"""

import argparse
import asyncio
import os
import tempfile
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import orjson
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.gateway import servers
from benchmarks.gateway.load import post
from benchmarks.gateway.workload import API_KEY, TENANT, USERS, Level, remember, requests
from benchmarks.kept import FOLDER, Cells, machine, show, write_dated
from benchmarks.mock_engine import mock_engine
from benchmarks.processes.clients import clients
from memloop.wire.memory import Namespace, StoreSearch

GOAL: Final = 1.6
"""The requests a second of two processes beside those of one."""
_WARM: Final = 200


@dataclass(frozen=True, slots=True)
class Part:
    """One of the programs. ``route`` names its requests in ``metric``."""

    name: str
    metric: str
    route: str
    requests: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Rate:
    """What a number of processes served. ``counted``: the requests by the program's own counter."""

    part: str
    processes: int
    per_second: float
    p50_ms: float
    failures: int
    counted: int

    def cells(self) -> Cells:
        """The row of a table."""
        return {
            "part": self.part,
            "processes": self.processes,
            "requests/s": round(self.per_second),
            "p50 ms": round(self.p50_ms, 2),
            "failures": self.failures,
            "counted": self.counted,
        }


def chats(count: int) -> Part:
    """Chats without memory."""
    sent = requests(Level("json", 1, count), memory=False)
    return Part("gateway", "gateway_request_seconds_count", "/v1/chat/completions", sent)


def searches(count: int) -> Part:
    """Searches of the benchmark's users, a few questions each."""
    sent = [post("/v1/items/search", _search(number), key=API_KEY) for number in range(count)]
    return Part("store", "memory_store_request_seconds_count", "/v1/items/search", sent)


def _search(number: int) -> bytes:
    owner = Namespace(tenant=TENANT, user_id=f"user-{number % USERS}")
    query = f"Who keeps the key of gate {number % 7}?"
    return StoreSearch(namespace=owner, query=query).model_dump_json().encode()


def measured(part: Part, server: servers.Server, processes: int, *, concurrency: int) -> Rate:
    """Send the requests, after a few that warm the program up."""
    with clients() as send:
        send(server.port, part.requests[:_WARM], concurrency)
        before = _counted(part, server)
        per_second, p50_ms, failures = send(server.port, part.requests, concurrency)
    return Rate(part.name, processes, per_second, p50_ms, failures, _counted(part, server) - before)


def _counted(part: Part, server: servers.Server) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = [sample for family in families for sample in family.samples if sample.name == part.metric]
    return round(sum(sample.value for sample in samples if sample.labels.get("route") == part.route))


def run(arguments: argparse.Namespace) -> list[Rate]:
    """Measure each part with one process and with two."""
    level, rates = partial(measured, concurrency=arguments.concurrency), list[Rate]()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        redis = stack.enter_context(servers.redis_server(Path(folder)))
        engine = stack.enter_context(mock_engine(latency_s=0.0))
        qdrant = stack.enter_context(_qdrant())
        for processes in (1, 2):
            several = {"MEMLOOP_PROCESSES": str(processes)}
            over = {**several, "QDRANT_URL": qdrant, "MEMLOOP_EMBEDDING_THREADS": str(processes)}
            with servers.memory_store(redis=redis, folder=Path(folder), settings=over) as store:
                if processes == 1:
                    asyncio.run(remember(f"http://127.0.0.1:{store.port}"))
                rates.append(level(searches(arguments.requests), store, processes))
                with servers.gateway(engine_url=engine, redis=redis, store=store, settings=several) as gateway:
                    rates.append(level(chats(arguments.requests), gateway, processes))
    return rates


@contextmanager
def _server_of(url: str) -> Generator[str]:
    yield url


def _qdrant() -> AbstractContextManager[str]:
    url = os.environ.get("QDRANT_URL")
    return _server_of(url) if url else servers.qdrant_stand_in()


def ratios(rates: Sequence[Rate]) -> dict[str, float]:
    """Return by part what two processes serve, divided by what one does."""
    by_place = {(rate.part, rate.processes): rate.per_second for rate in rates}
    return {part: round(by_place[part, 2] / by_place[part, 1], 2) for part in sorted({rate.part for rate in rates})}


def main(given: Sequence[str] | None = None) -> None:
    """Run the command of the argument list."""
    parser = argparse.ArgumentParser(prog="benchmarks.processes", description=__doc__)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--keep", action="store_true", help="write the result to benchmarks/results")
    arguments = parser.parse_args(given)
    rates = run(arguments)
    show(f"requests a second, {machine()}", [rate.cells() for rate in rates])
    found = {"goal": GOAL, "ratios": ratios(rates), "rates": [rate.cells() for rate in rates]}
    if arguments.keep:
        write_dated(FOLDER / "processes.json", found)
    print(orjson.dumps(found).decode())


if __name__ == "__main__":
    main()
