"""Measures how many more requests a second two processes of gateway and store serve than one: ``make bench-processes``.

All processes of a program are on one port (``MEMLOOP_PROCESSES``). The clients are one process at a lower priority. The
store searches on the Qdrant server of ``QDRANT_URL``, else on a stand-in that repeats its answers. With ``--compiled``
nginx is the gateway's engine and wrk its client: on two cores our own, in Python, leave too little to a second process.
The last line is one JSON object.
"""

import argparse
import asyncio
import os
import tempfile
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.gateway import servers
from benchmarks.gateway.load import post
from benchmarks.gateway.workload import API_KEY, TENANT, USERS, Level, remember, requests
from benchmarks.kept import FOLDER, Cells, machine, show, write_dated
from benchmarks.mock_engine import mock_engine
from benchmarks.processes.clients import Send, Served, clients
from benchmarks.processes.compiled import chats_by_wrk, is_installed, nginx_engine
from memloop.wire.memory import Namespace, StoreSearch

GOAL: Final = 1.6
"""The requests a second of two processes beside those of one."""
_WARM: Final = 200
_WRK_S: Final = 10


@dataclass(frozen=True, slots=True)
class Part:
    """One of the programs. ``route`` names its requests in ``metric``.

    ``load`` sends them to a port: all, or a few that warm the program up.
    """

    name: str
    metric: str
    route: str
    load: Callable[[int, bool], Served]


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


def chats(load: Callable[[int, bool], Served]) -> Part:
    """Chats without memory."""
    return Part("gateway", "gateway_request_seconds_count", "/v1/chat/completions", load)


def searches(load: Callable[[int, bool], Served]) -> Part:
    """Searches of the benchmark's users, a few questions each."""
    return Part("store", "memory_store_request_seconds_count", "/v1/items/search", load)


def by_our_clients(send: Send, sent: Sequence[bytes], concurrency: int) -> Callable[[int, bool], Served]:
    """Return a load of these requests."""
    return lambda port, warm_up: send(port, sent[:_WARM] if warm_up else sent, concurrency)


def by_wrk(concurrency: int) -> Callable[[int, bool], Served]:
    """Return a load of chats from wrk."""
    return lambda port, warm_up: chats_by_wrk(port, seconds=2 if warm_up else _WRK_S, concurrency=concurrency)


def _search(number: int) -> bytes:
    owner = Namespace(tenant=TENANT, user_id=f"user-{number % USERS}")
    query = f"Who keeps the key of gate {number % 7}?"
    return StoreSearch(namespace=owner, query=query).model_dump_json().encode()


def measured(part: Part, server: servers.Server, processes: int) -> Rate:
    """Send the requests, after a few that warm the program up."""
    part.load(server.port, True)
    before = _counted(part, server)
    per_second, p50_ms, failures = part.load(server.port, False)
    return Rate(part.name, processes, per_second, p50_ms, failures, _counted(part, server) - before)


def _counted(part: Part, server: servers.Server) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = [sample for family in families for sample in family.samples if sample.name == part.metric]
    return round(sum(sample.value for sample in samples if sample.labels.get("route") == part.route))


def run(arguments: argparse.Namespace) -> list[Rate]:
    """Measure each part with one process and with two."""
    rates = list[Rate]()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        parts = _parts(arguments, stack.enter_context(clients()))
        redis = stack.enter_context(servers.redis_server(Path(folder)))
        engine = stack.enter_context(nginx_engine() if arguments.compiled else mock_engine(latency_s=0.0))
        qdrant = stack.enter_context(_qdrant())
        for processes in (1, 2):
            several = {"MEMLOOP_PROCESSES": str(processes)}
            over = {**several, "QDRANT_URL": qdrant, "MEMLOOP_EMBEDDING_THREADS": str(processes)}
            with servers.memory_store(redis=redis, folder=Path(folder), settings=over) as store:
                if processes == 1:
                    asyncio.run(remember(f"http://127.0.0.1:{store.port}"))
                rates.append(measured(parts[0], store, processes))
                with servers.gateway(engine_url=engine, redis=redis, store=store, settings=several) as gateway:
                    rates.append(measured(parts[1], gateway, processes))
    return rates


def _parts(arguments: argparse.Namespace, send: Send) -> tuple[Part, Part]:
    count, concurrency = arguments.requests, arguments.concurrency
    found = [post("/v1/items/search", _search(number), key=API_KEY) for number in range(count)]
    asked = requests(Level("json", 1, count), memory=False)
    chatting = by_wrk(concurrency) if arguments.compiled else by_our_clients(send, asked, concurrency)
    return searches(by_our_clients(send, found, concurrency)), chats(chatting)


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
    parser.add_argument("--compiled", action="store_true", help="nginx and wrk beside the gateway")
    arguments = parser.parse_args(given)
    if arguments.compiled and not is_installed():
        parser.error("nginx and wrk are not on the PATH (Debian: nginx-light, wrk)")
    rates = run(arguments)
    show(f"requests a second, {machine()}", [rate.cells() for rate in rates])
    found = {"goal": GOAL, "ratios": ratios(rates), "rates": [rate.cells() for rate in rates]}
    if arguments.keep:
        write_dated(FOLDER / "processes.json", found)
    print(orjson.dumps(found).decode())


if __name__ == "__main__":
    main()
