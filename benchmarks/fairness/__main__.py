"""Measures a quiet tenant beside a loud one. Run: ``make bench-fairness``.

The quiet tenant sends single adds (to their event) and chats with memory, first alone, then while the loud tenant has
thousands of adds and hundreds of background reads in the queues. The last line is one JSON object.
"""

import argparse
import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson
import uvloop

from benchmarks.fairness.engine import writing_engine
from benchmarks.gateway import servers
from benchmarks.kept import Cells, show
from memloop.scoring.comparison import percentile

ENGINE_LATENCY_S: Final = 0.5
GOAL: Final = 2.0
"""The most by which the loud tenant may lengthen the quiet one's median."""
_KEYS: Final = {tenant: f"sk-{tenant}-benchmark-key" for tenant in ("loud", "quiet")}
_SENDERS: Final = 16
_POLL_S: Final = 0.02
_LONGEST_ADD_S: Final = 60.0
_COLUMNS: Final = ("quiet_s", "flooded_s", "ratio")
_FEWEST_WAITING: Final = 0.5


@dataclass(frozen=True, slots=True)
class Flood:
    """The loud tenant's jobs."""

    adds: int
    reads: int


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each add and each chat."""

    adds: Sequence[float]
    chats: Sequence[float]


class FloodOver(RuntimeError):
    """The loud tenant's jobs were done before the quiet one was measured."""


class NotDone(RuntimeError):
    """An add failed, or took too long."""


class Client:
    """One tenant's requests."""

    def __init__(self, http: aiohttp.ClientSession, tenant: str) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {_KEYS[tenant]}"}

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """Send one request and return its JSON. Raises aiohttp.ClientResponseError."""
        async with self._http.request(method, path, json=body, headers=self._headers) as response:
            response.raise_for_status()
            return await response.json()

    async def add(self, user_id: str, text: str) -> str:
        """Queue one memory write and return its event's id."""
        body = {"user_id": user_id, "messages": [{"role": "user", "content": text}]}
        return (await self.call("POST", "/v1/memory/add", body))["event_id"]

    async def added(self, number: int) -> float:
        """Add one memory and wait until it is done. Returns the seconds. Raises NotDone."""
        began = time.perf_counter()
        event_id = await self.add(f"user-{number}", f"I like tea number {number}.")
        while (elapsed_s := time.perf_counter() - began) < _LONGEST_ADD_S:
            if (await self.call("GET", f"/v1/memory/events/{event_id}"))["status"] == "completed":
                return time.perf_counter() - began
            await asyncio.sleep(_POLL_S)
        raise NotDone(f"add {number} was not completed after {elapsed_s:.1f} s")

    async def chatted(self, number: int) -> float:
        """Chat once with memory. Returns the seconds."""
        began = time.perf_counter()
        messages = [{"role": "user", "content": f"Question {number}: what do I like?"}]
        body = {"model": "mock", "messages": messages, "memory": {"user_id": f"chat-{number}", "mode": "read"}}
        await self.call("POST", "/v1/chat/completions", body)
        return time.perf_counter() - began

    async def read(self, number: int) -> None:
        """Queue one background read of a dozen chunks or more."""
        document = {"text": f"Page {number}. " + "The harbour master keeps the key. " * 400}
        sizes = {"chunk_tokens": 200, "memory_tokens": 100}
        body = {"model": "mock", "question": "Who?", "document": document, "background": True, **sizes}
        await self.call("POST", "/v1/long-read", body)


async def timed(client: Client, *, first: int, times: int) -> Times:
    """Measure adds and chats by turns, one request at a time."""
    adds, chats = list[float](), list[float]()
    for number in range(first, first + times):
        adds.append(await client.added(number))
        chats.append(await client.chatted(number))
    return Times(adds, chats)


async def flooded(client: Client, flood: Flood) -> None:
    """Queue the loud tenant's jobs: adds of 500 users, and reads."""
    adds, reads = iter(range(flood.adds)), iter(range(flood.reads))

    async def send() -> None:
        for number in reads:
            await client.read(number)
        for number in adds:
            await client.add(f"user-{number % 500}", f"Fact number {number}.")

    await asyncio.gather(*(send() for _ in range(_SENDERS)))


@asynccontextmanager
async def clients(port: int) -> AsyncGenerator[tuple[Client, Client]]:
    """The loud tenant's client and the quiet one's."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
        yield Client(http, "loud"), Client(http, "quiet")


async def waiting(worker_port: int) -> dict[str, float]:
    """Return the depth of the worker's queues."""
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"http://127.0.0.1:{worker_port}/metrics") as response,
    ):
        lines = (await response.text()).splitlines()
    found = [line.split() for line in lines if line.startswith("job_queue_depth{")]
    return {name.split('"')[1]: float(value) for name, value in found}


async def measured(gateway: servers.Server, worker: servers.Server, flood: Flood, times: int) -> dict[str, object]:
    """Measure alone, flood, measure again. Raises FloodOver when the flood was too small for the machine."""
    async with clients(gateway.port) as (loud, quiet):
        await timed(quiet, first=0, times=2)
        alone = await timed(quiet, first=100, times=times)
        await flooded(loud, flood)
        beside = await timed(quiet, first=200, times=times)
    left = await waiting(worker.port)
    if left["memory"] < _FEWEST_WAITING * flood.adds or left["reads"] < _FEWEST_WAITING * flood.reads:
        raise FloodOver(f"only {left} of the flood still waited at the end: make it larger")
    return {"left": left} | _figures(alone, beside)


def _figures(alone: Times, beside: Times) -> dict[str, object]:
    found: dict[str, object] = {}
    for kind, before, after in (("add", alone.adds, beside.adds), ("chat", alone.chats, beside.chats)):
        for percent in (50, 90):
            quiet_s, flooded_s = percentile(before, percent), percentile(after, percent)
            found[f"{kind}_p{percent}_quiet_s"] = round(quiet_s, 3)
            found[f"{kind}_p{percent}_flooded_s"] = round(flooded_s, 3)
            found[f"{kind}_p{percent}_ratio"] = round(flooded_s / quiet_s, 2)
        found[f"{kind}_goal"] = "met" if float(str(found[f"{kind}_p50_ratio"])) <= GOAL else "missed"
    return found


def _settings() -> Mapping[str, str]:
    keys = [f"{tenant}:{hashlib.sha256(key.encode()).hexdigest()}" for tenant, key in _KEYS.items()]
    return {"MEMLOOP_API_KEYS": ",".join(keys)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the servers, measure, stop them, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fairness", description=__doc__)
    parser.add_argument("--adds", type=int, default=10_000, help="memory writes of the loud tenant")
    parser.add_argument("--reads", type=int, default=200, help="background reads of the loud tenant")
    parser.add_argument("--times", type=int, default=20, help="adds and chats that are measured, each time")
    options = parser.parse_args(arguments)
    load_before = os.getloadavg()[0]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memloop-bench-")))
        engine_url = stack.enter_context(writing_engine(latency_s=ENGINE_LATENCY_S))
        redis = stack.enter_context(servers.redis_server(folder))
        store = stack.enter_context(servers.memory_store(redis=redis, folder=folder))
        keys = _settings()
        gateway = stack.enter_context(servers.gateway(engine_url=engine_url, redis=redis, store=store, settings=keys))
        worker = stack.enter_context(servers.worker(engine_url=engine_url, redis=redis, store=store, settings=keys))
        found = uvloop.run(measured(gateway, worker, Flood(options.adds, options.reads), options.times))
    show(f"a quiet tenant beside {options.adds} adds and {options.reads} reads of another", _rows(found))
    line = {"benchmark": "fairness", **found, "adds": options.adds, "reads": options.reads}
    print(orjson.dumps(line | {"cores": os.cpu_count(), "load_before": round(load_before, 2)}).decode())


def _rows(found: Mapping[str, object]) -> list[Cells]:
    return [
        {"request": f"{kind} p{percent}", **{name: found[f"{kind}_p{percent}_{name}"] for name in _COLUMNS}}
        for kind in ("add", "chat")
        for percent in (50, 90)
    ]


if __name__ == "__main__":
    main()
