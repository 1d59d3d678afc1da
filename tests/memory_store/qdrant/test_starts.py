"""Stores that start together on an empty cluster, each at a node of its own, agree about everything."""

import asyncio

import pytest
from qdrant_client import models

from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.qdrant.cluster import Cluster

pytestmark = pytest.mark.slow

_STORES = 4
_ROUNDS = 8
_SPEC = CollectionSpec("starts", 4)


@pytest.mark.parametrize("number", range(_ROUNDS))
async def test_stores_that_start_together_work_on_one_collection(cluster: Cluster, number: int) -> None:
    stores = [cluster.vectors(node=node) for node in range(_STORES)]
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as starting:
        for store in stores:
            starting.create_task(store.open(_SPEC))
    for at, store in enumerate(stores):
        payload = {"tenant": "t", "user_id": f"user {number} {at}"}
        await store.upsert([Point(f"00000000-0000-0000-0000-{at:012}", (1, 0, 0, 0), NO_WORDS, payload)])

    assert {store.name for store in stores} == {_SPEC.name}
    assert [await store.count(where=AllOf(())) for store in stores] == [_STORES] * _STORES
    client = cluster.client()
    status, keys = await client.cluster_status(), await client.list_shard_keys(_SPEC.name)
    if isinstance(status, models.ClusterStatusOneOf1):
        made = {one.key for one in keys.shard_keys or ()}
        assert made == {f"users-{shard}" for shard in range(2 * len(status.peers))}
    for store in stores:
        await store.close()
    await client.close()
