"""Nodes of a Qdrant cluster die and hang in turn under load: nothing acknowledged is lost, and all copies agree."""

import asyncio
from collections.abc import Callable, Sequence

import httpx
import pytest

from memory_store.vectors.server_setup import ShardConfig
from tests.memory_store.many_stores import Writers, flush, reembed, stored
from tests.memory_store.qdrant.cluster import Cluster
from tests.memory_store.qdrant.faults import Fault
from tests.memory_store.qdrant.stores import stores

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
]

_WRITERS = 4
_REST_S = 0.02
_SHARDINGS = {
    "2 copies, 1 acknowledges": ShardConfig(replicas=2, write_consistency=1),
    "2 copies, 2 acknowledge": ShardConfig(replicas=2, write_consistency=2),
    "3 copies, 2 acknowledge": ShardConfig(replicas=3, write_consistency=2),
}


@pytest.mark.parametrize("fault", ["kill", "hang"])
@pytest.mark.parametrize("sharding", _SHARDINGS.values(), ids=_SHARDINGS.keys())
async def test_nothing_acknowledged_is_lost_when_each_node_fails_in_turn(
    cluster: Cluster, redis_url: str, sharding: ShardConfig, fault: Fault
) -> None:
    _skip_if_few(cluster)
    async with stores(cluster, redis_url, sharding, count=2) as clients:
        writers = Writers(lambda: clients, rest_s=_REST_S)
        async with writers.writing(_WRITERS):
            await writers.wait_for(5)
            for node in range(len(cluster.urls)):
                async with cluster.faults.on(fault, node):
                    await asyncio.sleep(cluster.fault_s)
                await cluster.whole()
                await writers.wait_for(5)
        await cluster.alike()
        await _assert_kept(cluster, writers)


async def test_a_shard_without_a_live_copy_refuses_writes_until_its_node_is_back(
    cluster: Cluster, redis_url: str
) -> None:
    _skip_if_few(cluster)
    async with stores(cluster, redis_url, ShardConfig(replicas=1), count=1) as clients:
        writers = Writers(lambda: clients, rest_s=_REST_S)
        async with writers.writing(_WRITERS):
            await writers.wait_for(5)
            async with cluster.faults.on("kill", len(cluster.urls) - 1):
                await asyncio.sleep(cluster.fault_s)
            await cluster.whole()
            await writers.wait_for(5)
        assert set(writers.books.refused) <= {503, 504}
        await _assert_kept(cluster, writers)


@pytest.mark.parametrize("count", [2, 3])
async def test_stores_lose_no_write_under_a_flush_and_a_reembedding(
    cluster: Cluster, redis_url: str, count: int
) -> None:
    async with stores(cluster, redis_url, ShardConfig(replicas=min(2, len(cluster.urls))), count=count) as clients:
        writers = Writers(lambda: clients, rest_s=_REST_S)
        async with writers.writing(_WRITERS):
            await writers.wait_for(10)
            await flush(lambda: clients)
            await writers.wait_for(10)
            await reembed(lambda: clients, "hashing-96")
            await writers.wait_for(10)
        await cluster.alike()
        await _assert_kept(cluster, writers)


@pytest.mark.parametrize("fault", ["kill", "hang"])
async def test_stores_lose_no_write_when_a_node_fails_during_a_flush(
    cluster: Cluster, redis_url: str, fault: Fault
) -> None:
    _skip_if_few(cluster)
    async with stores(cluster, redis_url, ShardConfig(replicas=3, write_consistency=2), count=2) as clients:
        writers = Writers(lambda: clients, rest_s=_REST_S)
        async with writers.writing(_WRITERS):
            await writers.wait_for(20)
            async with asyncio.TaskGroup() as group:
                group.create_task(_flush_until_done(lambda: clients))
                async with cluster.faults.on(fault, 1):
                    await asyncio.sleep(cluster.fault_s)
            await cluster.whole()
            await writers.wait_for(10)
        await cluster.alike()
        await _assert_kept(cluster, writers)


async def _flush_until_done(clients: Callable[[], Sequence[httpx.AsyncClient]]) -> None:
    await flush(clients)


def _skip_if_few(cluster: Cluster) -> None:
    if len(cluster.urls) < 3:
        pytest.skip("needs three nodes")


async def _assert_kept(cluster: Cluster, writers: Writers) -> None:
    kept = await stored(await cluster.in_service())
    lost = [value for value in writers.books.acknowledged if value not in kept]
    doubled = [value for value, times in kept.items() if times > 1]
    print(
        f"{len(writers.books.acknowledged)} acknowledged, longest {writers.books.longest_s:.1f} s, "
        f"refused {dict(writers.books.refused)}, {len(lost)} lost, {len(doubled)} doubled"
    )
    assert (lost, doubled) == ([], [])
