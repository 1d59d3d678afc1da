"""Measures what a request costs the gateway in each API that it translates, beside the same request as a chat.

Run: ``make bench-apis``. Processor time of the gateway's process alone, the APIs in turn, the median of the rounds.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.gateway import servers
from benchmarks.gateway.load import post
from benchmarks.gateway.target import loaded
from benchmarks.gateway.workload import API_KEY, ENGINE_LATENCY_S, USERS, remember
from benchmarks.mock_engine import STREAM_EVENTS, mock_engine

GOAL: Final = 1.5
"""At most so many times the cost of the chat."""
CHAT: Final = "chat"
RESPONSES: Final = "/v1/responses"
PATHS: Final[Mapping[str, str]] = {
    CHAT: "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": RESPONSES,
    "stored responses": RESPONSES,
}
_SYSTEM = "You answer in one sentence. " * 20
_CONCURRENCY: Final = 4


def body(api: str, number: int, *, stream: bool, memory: bool) -> dict[str, Any]:
    """Return the same question as a request of that API."""
    question = {"role": "user", "content": f"Question {number}: who keeps the key of the ferry pier?"}
    asked: dict[str, Any] = {"model": "mock", "temperature": 0.7, "max_tokens": 100}
    if api == CHAT:
        asked["messages"] = [{"role": "system", "content": _SYSTEM}, question]
        asked |= {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    elif PATHS[api] == RESPONSES:
        del asked["max_tokens"]
        asked |= {"instructions": _SYSTEM, "input": [question], "stream": stream, "max_output_tokens": 100}
        asked["store"] = api == "stored responses"
    else:
        asked |= {"system": _SYSTEM, "messages": [question], "stream": stream}
    return asked | ({"memory": {"user_id": f"user-{number % USERS}"}} if memory else {})


async def measured(gateway: servers.Server, api: str, count: int, *, stream: bool, memory: bool) -> float:
    """Return the gateway's CPU milliseconds per request of the API. Raises SystemExit when a request fails."""
    bodies = (body(api, number, stream=stream, memory=memory) for number in range(count))
    asked = [post(PATHS[api], orjson.dumps(each), key=API_KEY) for each in bodies]
    load, used = await loaded(gateway.port, asked, concurrency=_CONCURRENCY, processes={gateway.name: gateway})
    if failures := load.failures(events=STREAM_EVENTS if stream else 0):
        raise SystemExit(f"{failures} of {count} requests failed")
    return 1000 * used[gateway.name] / count


async def run(
    gateway: servers.Server, store: servers.Server, *, rounds: int, count: int
) -> dict[str, dict[str, float]]:
    """Measure every API under every load, by the load's and the API's name."""
    await remember(f"http://127.0.0.1:{store.port}")
    found: dict[str, dict[str, float]] = {}
    for stream in (False, True):
        for memory in (False, True):
            kind = f"{'stream' if stream else 'json'}, memory {'on' if memory else 'off'}"
            costs: dict[str, list[float]] = {api: [] for api in PATHS}
            for _ in range(rounds):
                for api, own in costs.items():
                    own.append(await measured(gateway, api, count, stream=stream, memory=memory))
            found[kind] = {api: round(statistics.median(own), 3) for api, own in costs.items()}
    return found


def ratios(found: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the cost of each API as a multiple of the chat's."""
    return {
        kind: {api: round(cost / costs[CHAT], 2) for api, cost in costs.items() if api != CHAT}
        for kind, costs in found.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the servers, measure, print. The last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway.apis", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400)
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memloop-bench-")))
        engine_url = stack.enter_context(mock_engine(latency_s=ENGINE_LATENCY_S))
        redis = stack.enter_context(servers.redis_server(folder))
        store = stack.enter_context(servers.memory_store(redis=redis, folder=folder))
        gateway = stack.enter_context(servers.gateway(engine_url=engine_url, redis=redis, store=store))
        found = uvloop.run(run(gateway, store, rounds=options.rounds, count=options.requests))
    compared = ratios(found)
    table = Table("load", *(f"{api}, CPU ms" for api in PATHS), "times the chat's")
    for kind, costs in found.items():
        table.add_row(kind, *(f"{cost:g}" for cost in costs.values()), f"{compared[kind]}")
    Console(width=120).print(table)
    met = all(ratio <= GOAL for row in compared.values() for ratio in row.values())
    line = {"benchmark": "gateway_apis", "cpu_ms": found, "times_chat": compared, "goal": GOAL, "met": met}
    print(orjson.dumps(line).decode())


if __name__ == "__main__":
    main()
