"""A flush and a re-embedding while Redis fails over: no acknowledged write is lost (``make test-stores``)."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx
import pytest
from qdrant_client import AsyncQdrantClient

from memory_store.vectors.qdrant_server import QdrantServer, ServerCollection
from memory_store.vectors.server_layout import Layout
from tests.fakes.qdrant_points import QdrantWithPoints
from tests.fakes.redis_sentinels import WatchedRedis
from tests.memory_store.conftest import serving
from tests.memory_store.many_stores import Writers, flush, reembed, stored
from tests.memory_store.qdrant.stores import store_app

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
]

_ROUNDS = 3
_STORES = 2
_WRITERS = 4
_MOST_BEFORE_A_KILL_S = 1.0


@pytest.fixture
def redis() -> Iterator[WatchedRedis]:
    watched = WatchedRedis.start()
    yield watched
    watched.stop()


@dataclass
class Fleet:
    """Two stores over one Qdrant server and a Redis that fails over."""

    server: QdrantWithPoints
    url: str
    redis: WatchedRedis
    clients: list[httpx.AsyncClient]

    async def primary_dies(self) -> None:
        """``kill -9`` of Redis's primary at some moment; its place is taken, and it comes back as a replica."""
        await asyncio.sleep(random.uniform(0, _MOST_BEFORE_A_KILL_S))
        dead = await asyncio.to_thread(self.redis.kill_primary)
        await asyncio.to_thread(self.redis.wait_until_taken_over, dead)
        await asyncio.to_thread(self.redis.revive, dead)

    async def kept(self) -> dict[str, int]:
        """How often each text is in service."""
        client = _qdrant(self.url)
        try:
            return await stored(ServerCollection(client, self.server.aliases["memloop"], Layout()))
        finally:
            await client.close()


def _qdrant(url: str) -> AsyncQdrantClient:
    return AsyncQdrantClient(url=url, timeout=60, check_compatibility=False)


@pytest.fixture
async def fleet(redis: WatchedRedis) -> AsyncIterator[Fleet]:
    server = QdrantWithPoints()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(server.running())
        apps = [store_app(QdrantServer(_qdrant(url)), redis.url, ack_copies=1) for _ in range(_STORES)]
        yield Fleet(server, url, redis, [await stack.enter_async_context(serving(app)) for app in apps])


async def test_no_acknowledged_write_is_lost_when_redis_fails_over_during_a_copy(fleet: Fleet) -> None:
    models = itertools.cycle(["hashing-96", "hashing-64"])
    for number in range(_ROUNDS):
        writers = Writers(lambda: fleet.clients, name=f"round {number}", rest_s=0.05)
        async with writers.writing(_WRITERS):
            await writers.wait_for(10)
            await asyncio.gather(flush(lambda: fleet.clients), fleet.primary_dies())
            await writers.wait_for(5)
            await asyncio.gather(reembed(lambda: fleet.clients, next(models)), fleet.primary_dies())
            await writers.wait_for(5)
        kept = await fleet.kept()
        lost = [value for value in writers.books.acknowledged if value not in kept]
        doubled = [value for value, times in kept.items() if times > 1]
        print(
            f"round {number}: {len(writers.books.acknowledged)} writes, longest {writers.books.longest_s:.1f} s, "
            f"refused {dict(writers.books.refused)}, {len(lost)} lost, {len(doubled)} doubled",
            flush=True,
        )
        assert (lost, doubled) == ([], [])
