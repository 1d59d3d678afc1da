"""``python -m benchmarks.memory.pending``: what pending turns add to a search; the last line is JSON.

The same searches of one running store, in changing order: the store's answer alone, and with the pending turns of a
user who has none, and of one who has three queued writes.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import orjson
import uvloop
from pydantic import SecretStr

from benchmarks.gateway import servers
from gateway.engine import read_models
from gateway.memory import search
from gateway.memory.jobs import MemoryJob, new_event_id
from gateway.memory.memory import Memory
from gateway.metrics import Metrics
from gateway.settings import WorkerSettings
from gateway.worker import open_work
from memloop.scoring.comparison import percentile
from memloop.wire.memory import MemoryDraft, Namespace, SearchResult, Source, StoreAdd, StoreBatch, StoreSearch
from memloop_service import new_registry

_FACTS = 200
_GOAL_MS = 1.0
_IDLE = Namespace(tenant="bench", user_id="idle")
_BUSY = Namespace(tenant="bench", user_id="busy")


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of each search."""

    store: list[float] = field(default_factory=list[float])
    none_pending: list[float] = field(default_factory=list[float])
    some_pending: list[float] = field(default_factory=list[float])


def main() -> None:
    """Measure and print. The last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory.pending", description=__doc__)
    parser.add_argument("--searches", type=int, default=300, help="searches of each kind")
    times = uvloop.run(run(parser.parse_args().searches))
    store, none, some = (percentile(one, 50) for one in (times.store, times.none_pending, times.some_pending))
    print(f"p50 of a search: {store:.2f} ms; nothing pending {none:.2f} ms; three writes pending {some:.2f} ms")
    figures = {
        "none_pending_added_ms": round(none - store, 3),
        "some_pending_added_ms": round(some - store, 3),
        "none_pending_ratio": round(none / store, 3),
        "some_pending_ratio": round(some / store, 3),
        "goal_met": max(none, some) - store <= _GOAL_MS,
    }
    print(orjson.dumps({"benchmark": "pending", **figures, "cores": os.cpu_count()}).decode())


async def run(searches: int) -> Times:
    """Start Redis and a store, fill them, and measure."""
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.redis_server(Path(folder)) as redis,
        servers.memory_store(redis=redis, folder=Path(folder)) as store,
    ):
        settings = WorkerSettings(
            redis_url=SecretStr(f"redis://127.0.0.1:{redis.port}/0"),
            store_url=f"http://127.0.0.1:{store.port}",
            engine_url="http://127.0.0.1:9",
            model="m",
            startup_wait_s=0,
        )
        async with open_work(read_models(settings), settings, Metrics(new_registry())) as work:
            await _fill(work.memory)
            return await _measured(work.memory, searches)


async def _fill(memory: Memory) -> None:
    for namespace in (_IDLE, _BUSY):
        drafts = (MemoryDraft(key=f"Town {number}", value=f"Ann visited town {number}.") for number in range(_FACTS))
        await memory.store.add_batch(
            StoreBatch(adds=tuple(StoreAdd(namespace=namespace, drafts=(one,)) for one in drafts))
        )
    for text in ("I live in Oslo.", "I work in Bergen.", "I like green tea."):
        job = MemoryJob(event_id=new_event_id(_BUSY), namespace=_BUSY, turns=(Source(role="user", content=text),))
        await memory.queue.enqueue(job)


async def _measured(memory: Memory, searches: int) -> Times:
    times = Times()
    beside = partial(search, store=memory.store, pending=memory.pending, metrics=memory.metrics)
    kinds = [
        (times.store, memory.store.search, _IDLE),
        (times.none_pending, beside, _IDLE),
        (times.some_pending, beside, _BUSY),
    ]
    for number in range(searches):
        for place, (found, searching, namespace) in enumerate(kinds[number % 3 :] + kinds[: number % 3]):
            found.append(await _ms(searching, _question(namespace, 3 * number + place)))
    return times


def _question(namespace: Namespace, number: int) -> StoreSearch:
    return StoreSearch(namespace=namespace, query=f"When was Ann in town {number}?")


async def _ms(searching: Callable[[StoreSearch], Awaitable[SearchResult]], asked: StoreSearch) -> float:
    began = time.perf_counter()
    await searching(asked)
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()
