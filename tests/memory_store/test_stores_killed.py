"""Three store processes, writes on all, a flush and a re-embedding, a store killed in each: ``make test-stores``."""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import pytest
from qdrant_client import AsyncQdrantClient

from memloop.chores import alongside
from memloop.wire.memory import Namespace
from memory_store.vectors.qdrant_server import ServerCollection
from memory_store.vectors.server_layout import Layout
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.fakes.qdrant_points import QdrantWithPoints
from tests.fakes.store_process import forked
from tests.memory_store.api import StoreApi
from tests.memory_store.many_stores import OWNERS, Writers, flush, reembed, stored

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

_ROUNDS = 20
_STORES = 3
_WRITERS = 4
_FORGOTTEN = Namespace(tenant="t", user_id="forgotten")
_FORGOTTEN_FACTS = 20
_MOST_BEFORE_A_KILL_S = 1.5
_TURNED_S = 2.0
_ON_ITS_WAY_S = 1.0
"""A read that a store has sent may take so long on a busy machine."""
_READ_EVERY_S = 0.05
_START_S = 300.0
_JSON = {"content-type": "application/json"}


@dataclass
class Process:
    """A store process and a client on it."""

    process: BaseProcess
    http: httpx.AsyncClient


@dataclass
class Fleet:
    """Three processes over one Redis and one Qdrant server; those that live are ``up``."""

    server: QdrantWithPoints
    url: str
    redis_url: str
    folder: Path
    up: list[Process] = field(default_factory=list[Process])

    async def start(self) -> None:
        """One more, with the model in service."""
        name = self.server.aliases.get("memloop", "memloop_hashing-64_64")
        model = name.removeprefix("memloop_").rpartition("_")[0]
        port = free_port()
        environment = {
            "QDRANT_URL": self.url,
            "MEMLOOP_REDIS_URL": self.redis_url,
            "MEMLOOP_EMBEDDING_MODEL": model,
            "MEMLOOP_PORT": str(port),
        }
        process = await asyncio.to_thread(forked, environment, self.folder / f"store.{port}.log")
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=_JSON, timeout=PATIENCE_S)
        one = Process(process, client)
        try:
            await _until_ready(one)
        except BaseException:
            await self._end(one)
            raise
        self.up.append(one)

    async def kill(self, one: Process) -> None:
        """``kill -9``."""
        self.up.remove(one)
        await self._end(one)

    async def _end(self, one: Process) -> None:
        one.process.kill()
        await asyncio.to_thread(one.process.join)
        await one.http.aclose()

    async def close(self) -> None:
        """End what lives."""
        for one in list(self.up):
            await self.kill(one)

    @property
    def clients(self) -> list[httpx.AsyncClient]:
        """Of the stores that live."""
        return [one.http for one in self.up]

    @property
    def in_service(self) -> str:
        """The collection that the alias names."""
        return self.server.aliases["memloop"]

    async def stored(self) -> dict[str, int]:
        """How often each text is in service."""
        client = AsyncQdrantClient(url=self.url, timeout=60, check_compatibility=False)
        try:
            return await stored(ServerCollection(client, self.in_service, Layout()))
        finally:
            await client.close()


async def _until_ready(one: Process) -> None:
    async with asyncio.timeout(_START_S):
        while True:
            assert one.process.is_alive()
            with suppress(httpx.HTTPError):
                if (await one.http.get("/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.05)


@pytest.fixture
async def fleet(redis_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    server = QdrantWithPoints()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(server.running())
        fleet = Fleet(server, url, redis_url, tmp_path)
        stack.push_async_callback(fleet.close)
        await asyncio.gather(*(fleet.start() for _ in range(_STORES)))
        yield fleet


@asynccontextmanager
async def one_killed(fleet: Fleet) -> AsyncGenerator[None]:
    """Kills one of the stores, the one that copies or another, soon after the block has begun; it comes back."""

    async def soon() -> None:
        await asyncio.sleep(random.uniform(0, _MOST_BEFORE_A_KILL_S))
        await fleet.kill(random.choice(fleet.up))

    async with asyncio.TaskGroup() as group:
        group.create_task(soon())
        yield
    await fleet.start()


async def forget(fleet: Fleet) -> None:
    """Erase a user, at any store, until it is done."""
    await asyncio.sleep(random.uniform(0, _MOST_BEFORE_A_KILL_S))
    await erased(fleet, _FORGOTTEN)


async def erased(fleet: Fleet, owner: Namespace) -> None:
    while True:
        with suppress(httpx.HTTPError):
            http = random.choice(fleet.clients)
            if (await http.delete("/v1/namespaces", params=StoreApi(http, owner).owner)).status_code == 200:
                return
        await asyncio.sleep(0.1)


async def read(fleet: Fleet) -> None:
    """Ask every store all the time, so that one that answers from an old collection is seen."""
    while True:
        for http in fleet.clients:
            with suppress(httpx.HTTPError):
                await http.get("/v1/items", params=StoreApi(http).owner)
        await asyncio.sleep(_READ_EVERY_S)


async def read_after_the_swap(fleet: Fleet, writers: Writers, old: str) -> float:
    """Return how long after the last swap the collection before was still read, s."""
    swapped = fleet.server.swapped_at
    await asyncio.sleep(max(0.0, swapped + _TURNED_S + _ON_ITS_WAY_S - time.monotonic()))
    await writers.wait_for(3)
    return max(0.0, fleet.server.last_read.get(old, 0.0) - swapped)


async def fill(fleet: Fleet) -> None:
    api = StoreApi(fleet.clients[0], _FORGOTTEN)
    for number in range(_FORGOTTEN_FACTS):
        await api.add(f"secret {number}", f"secret {number}")


async def one_round(fleet: Fleet, writers: Writers, model: str) -> tuple[float, float]:
    """A flush and a re-embedding, a store killed in each, a user erased meanwhile."""
    async with writers.writing(_WRITERS):
        await fill(fleet)
        await writers.wait_for(10)
        old = fleet.in_service
        async with one_killed(fleet), asyncio.TaskGroup() as group:
            group.create_task(flush(lambda: fleet.clients))
            group.create_task(forget(fleet))
        after_flush = await read_after_the_swap(fleet, writers, old)
        old = fleet.in_service
        async with one_killed(fleet):
            await reembed(lambda: fleet.clients, model)
        after_reembedding = await read_after_the_swap(fleet, writers, old)
    return after_flush, after_reembedding


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_no_write_is_lost_or_doubled_when_stores_are_killed_in_mid_copy(fleet: Fleet) -> None:
    models = itertools.cycle(["hashing-96", "hashing-64"])
    async with alongside(read(fleet)):
        for number in range(_ROUNDS):
            writers = Writers(lambda: fleet.clients, name=f"round {number}", rest_s=0.1)
            lags = await one_round(fleet, writers, next(models))
            kept = await fleet.stored()
            lost = [value for value in writers.books.acknowledged if value not in kept]
            doubled = [value for value, count in kept.items() if count > 1]
            secrets = [value for value in kept if value.startswith("secret")]
            print(
                f"round {number}: {len(writers.books.acknowledged)} writes, longest {writers.books.longest_s:.2f} s, "
                f"refused {dict(writers.books.refused)}, {len(lost)} lost, {len(doubled)} doubled, "
                f"old collection read until {lags[0]:.2f} and {lags[1]:.2f} s after the swap",
                flush=True,
            )
            assert (lost, doubled, secrets) == ([], [], [])
            assert max(lags) < _TURNED_S + _ON_ITS_WAY_S
            for owner in OWNERS:
                await erased(fleet, owner)
            assert await fleet.stored() == {}
