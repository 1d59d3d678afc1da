"""A primary of a real Redis dies in mid-load, in a cluster of six and behind three Sentinels: nothing is lost.

Run by ``make test-failover``. With ``MEMLOOP_REDIS_ACK_COPIES=1`` what was acknowledged is on a replica.
"""

import asyncio
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import pytest
from redis.asyncio import Redis

from gateway.memory import event_id
from gateway.queue import Hold, JobResult, RunnerOptions
from gateway.queue.runner import Runner
from memloop.wire.errors import DependencyError, MemloopError
from memloop_state.connecting import connect
from memloop_state.credentials import API_KEYS
from memloop_state.queue.jobs import Lease, Submission
from memloop_state.queue.lanes import LaneQueue
from memloop_state.steps import Partitions
from tests.fakes.job_engine import engine_server
from tests.fakes.job_store import store_server
from tests.fakes.redis_cluster import RedisClusterServers
from tests.fakes.redis_sentinels import WatchedRedis
from tests.fakes.service_process import started
from tests.gateway.api_rig import ALICE_KEY, OPERATED, OPERATOR_KEY
from tests.gateway.rig import eventually

ROUNDS = 20
ACKNOWLEDGED_A_ROUND = 500
ROUND_S = 600.0
LANES = 24
OPTIONS = RunnerOptions(concurrency=8, lease_s=3.0, idle_s=3.0, attempts=3, retry_s=0.05, poll_s=0.2, stop_s=1.0)
WORDS = "The harbour master counts the boats each evening. "

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


class FailsOver(Protocol):
    """Servers of which one takes over when a primary dies."""

    @property
    def url(self) -> str: ...
    def kill_primary(self) -> int: ...
    def wait_until_taken_over(self, dead: int) -> None: ...
    def revive(self, number: int) -> None: ...
    def stop(self) -> None: ...


def start(kind: str) -> FailsOver:
    return RedisClusterServers.start(node_timeout_ms=1000) if kind == "cluster" else WatchedRedis.start()


@pytest.fixture(params=["cluster", "sentinels"])
def servers(request: pytest.FixtureRequest) -> Iterator[FailsOver]:
    started = start(request.param)
    yield started
    started.stop()


@asynccontextmanager
async def connected(url: str, *, ack_copies: int = 1) -> AsyncGenerator[Redis]:
    redis = connect(url, connect_timeout_s=30, read_timeout_s=30, ack_copies=ack_copies)
    try:
        yield redis
    finally:
        await redis.aclose()


@dataclass
class Handler:
    """Counts how often each job was run to its end."""

    runs: Counter[str] = field(default_factory=Counter[str])

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        del hold
        await asyncio.sleep(0.01)
        self.runs[lease.job_id] += 1
        return JobResult("completed", "{}")

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        raise AssertionError(f"{lease.job_id} was given up: {error.message}")

    async def cancelled(self, lease: Lease) -> JobResult:
        raise AssertionError(f"{lease.job_id} was cancelled")


def job_of(queue: LaneQueue, number: int) -> Submission:
    lane = f"t/user{number % LANES}"
    index = queue.keys.of_name(lane).key("events", *lane.split("/"))
    job_id = event_id(lane, random.randbytes(16).hex())
    return Submission(job_id, lane, int(time.time() * 1000), index, {"status": "queued", "payload": "x" * 1000})


@dataclass
class Producer:
    """Queues jobs one after another; remembers those that were acknowledged, and how many were refused."""

    queue: LaneQueue
    acknowledged: list[str] = field(default_factory=list[str])
    refused: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            await self._queue_one(job_of(self.queue, number))

    async def _queue_one(self, job: Submission) -> None:
        try:
            async with asyncio.timeout(2):
                await self.queue.submit(job)
        except (DependencyError, TimeoutError):
            self.refused += 1
            await asyncio.sleep(0.05)
        else:
            self.acknowledged.append(job.job_id)


@asynccontextmanager
async def flowing(url: str, handler: Handler) -> AsyncGenerator[Producer]:
    """Two workers and a producer with a client each; on leaving, the producer ends first and the queue runs empty."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(url)) for _ in range(3)]
        producer = Producer(LaneQueue(clients[0], "memory"))
        queued, worked = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for name, client in zip(("one", "two"), clients[1:], strict=True):
                runner = Runner(LaneQueue(client, "memory"), handler, OPTIONS, worker=name)
                group.create_task(runner.run(worked))
            producing = group.create_task(producer.run(queued))
            yield producer
            queued.set()
            await producing
            await eventually(lambda: _empty(producer.queue))
            worked.set()


async def _empty(queue: LaneQueue) -> bool:
    return (await queue.depth()).jobs == 0


async def test_every_acknowledged_job_is_done_when_a_primary_dies(servers: FailsOver) -> None:
    handler = Handler()
    async with flowing(servers.url, handler) as producer:
        await eventually(lambda: len(producer.acknowledged) > 300)
        dead = await asyncio.to_thread(servers.kill_primary)
        await asyncio.to_thread(servers.wait_until_taken_over, dead)
        await asyncio.to_thread(servers.revive, dead)
        before = len(producer.acknowledged)
        await eventually(lambda: len(producer.acknowledged) > before + 300)
    told, again = producer.acknowledged, sum(runs > 1 for runs in handler.runs.values())
    print(f"\n{len(told)} acknowledged, {producer.refused} refused, {again} run again")
    assert [job_id for job_id in told if not handler.runs[job_id]] == []
    assert again <= 2 * OPTIONS.concurrency


@dataclass
class Clients:
    """Clients of a gateway that ask again as soon as they are answered."""

    http: aiohttp.ClientSession
    acknowledged: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    refused_at: list[float] = field(default_factory=list[float])
    asked: int = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    async def add(self) -> None:
        body = {"messages": [{"role": "user", "content": WORDS}], "user_id": f"user{self.asked % LANES}"}
        await self._ask("add", "/v1/memory/add", body, ALICE_KEY)

    async def read(self) -> None:
        body = {"model": "m", "question": "Who?", "document": {"text": WORDS * 9}, "background": True}
        await self._ask("read", "/v1/long-read", body, ALICE_KEY)

    async def key(self) -> None:
        body = {"name": "made under load", "tenant": f"tenant{self.asked % LANES}"}
        await self._ask("key", "/v1/admin/keys", body, OPERATOR_KEY)

    async def _ask(self, kind: str, path: str, body: dict[str, Any], key: str) -> None:
        self.asked += 1
        async with self.http.post(path, json=body, headers={"Authorization": f"Bearer {key}"}) as answer:
            got = await answer.json()
        if answer.status in {200, 201, 202}:
            self.acknowledged[kind].append(got.get("event_id") or got["id"])
            return
        assert (answer.status, "Retry-After" in answer.headers) == (503, True), got
        self.refused_at.append(time.monotonic())
        await asyncio.sleep(0.02)


@asynccontextmanager
async def under_load(url: str) -> AsyncGenerator[Clients]:
    """Twelve clients: eight add memories, three have documents read, one creates keys."""
    connector, stop = aiohttp.TCPConnector(keepalive_timeout=1), asyncio.Event()
    async with aiohttp.ClientSession(url, connector=connector) as http, asyncio.TaskGroup() as group:
        clients = Clients(http)

        async def again(ask: Any) -> None:
            while not stop.is_set():
                await ask()

        for ask in [clients.add] * 8 + [clients.read] * 3 + [clients.key]:
            group.create_task(again(ask))
        try:
            yield clients
        finally:
            stop.set()


@asynccontextmanager
async def gateway_on(redis_url: str, folder: Path) -> AsyncGenerator[str]:
    async with engine_server(lambda _: "") as engine, store_server() as store:
        environment = {
            "MEMLOOP_REDIS_URL": redis_url,
            "MEMLOOP_REDIS_ACK_COPIES": "1",
            "MEMLOOP_STORE_URL": store.url,
            "MEMLOOP_ENGINE_URL": engine.url,
            "MEMLOOP_MODEL": "m",
            "MEMLOOP_API_KEYS": OPERATED,
        }
        async with started("gateway.main", folder, environment) as gateway:
            yield gateway.url


async def one_round(servers: FailsOver, clients: Clients) -> float:
    """Kill a primary in mid-load and bring it back. Returns the seconds from the kill to the last refusal."""
    goal = clients.count + ACKNOWLEDGED_A_ROUND
    at_least = goal - random.randrange(1, ACKNOWLEDGED_A_ROUND // 2)
    await eventually(lambda: clients.count > at_least, timeout_s=ROUND_S)
    dead = await asyncio.to_thread(servers.kill_primary)
    killed_at = time.monotonic()
    await asyncio.to_thread(servers.wait_until_taken_over, dead)
    await asyncio.to_thread(servers.revive, dead)
    await eventually(lambda: clients.count > goal, timeout_s=ROUND_S)
    return max([0.0, *(at - killed_at for at in clients.refused_at)])


async def lost(url: str, acknowledged: dict[str, list[str]]) -> list[str]:
    """Return the acknowledged adds, reads and keys that Redis does not have."""
    async with connected(url) as redis:
        names = Partitions(redis)
        jobs = [*acknowledged["add"], *acknowledged["read"]]
        gone = [job for job in jobs if not await redis.exists(names.job(job))]
        return gone + [key for key in acknowledged["key"] if not await redis.hexists(API_KEYS, key)]  # pyright: ignore


async def price(url: str) -> float:
    """Return how much longer 200 jobs take to be queued one after another when a replica must have each."""
    took_s: dict[int, list[float]] = {0: [], 1: []}
    for copies in [0, 1] * 5:
        async with connected(url, ack_copies=copies) as redis:
            queue = LaneQueue(redis, "price")
            began = time.perf_counter()
            for number in range(200):
                await queue.submit(job_of(queue, number))
            took_s[copies].append(time.perf_counter() - began)
    return statistics.median(took_s[1]) / statistics.median(took_s[0])


async def test_nothing_acknowledged_is_lost_in_twenty_deaths(servers: FailsOver, tmp_path: Path) -> None:
    ratio = await price(servers.url)
    async with gateway_on(servers.url, tmp_path) as url, under_load(url) as clients:
        outages_s = [await one_round(servers, clients) for _ in range(ROUNDS)]
    gone = await lost(servers.url, clients.acknowledged)
    counts = {kind: len(ids) for kind, ids in clients.acknowledged.items()}
    print(
        f"\n{counts} acknowledged, {len(clients.refused_at)} refused, {len(gone)} lost; refused for "
        f"{min(outages_s):.1f} to {max(outages_s):.1f} s after a death, {statistics.median(outages_s):.1f} s in the "
        f"median; with a replica's copy, queueing takes {ratio:.2f} times as long"
    )
    assert gone == []
    assert clients.count >= ROUNDS * ACKNOWLEDGED_A_ROUND
    assert all(counts[kind] > ROUNDS for kind in ("add", "read", "key"))
