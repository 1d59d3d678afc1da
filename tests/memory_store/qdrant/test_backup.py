"""A backup of a Qdrant cluster that is written to, and its restore: every memory is there once."""

from pathlib import Path

import pytest
from qdrant_client import models

from memory_store.backup.creating import Stack, create
from memory_store.backup.manifest import checked
from memory_store.backup.qdrant_shards import Qdrant
from memory_store.backup.restoring import restore_shards
from memory_store.vectors.server_setup import ShardConfig
from tests.memory_store.api import StoreApi
from tests.memory_store.many_stores import OWNERS, stored
from tests.memory_store.qdrant.cluster import Cluster
from tests.memory_store.qdrant.stores import stores

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
]

_FACTS = 10


async def test_every_memory_of_a_cluster_is_there_after_a_backup_and_a_restore(
    cluster: Cluster, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cluster.client()
    if not isinstance(await client.cluster_status(), models.ClusterStatusOneOf1):
        pytest.skip("needs a server in distributed mode")
    monkeypatch.delenv("MEMLOOP_STORE_URL", raising=False)
    copies = min(2, len(cluster.urls))
    url, nodes = cluster.urls[0], ",".join(cluster.urls)
    async with stores(cluster, redis_url, ShardConfig(replicas=copies), count=1) as [http]:
        for owner in OWNERS:
            for number in range(_FACTS):
                await StoreApi(http, owner).add(f"fact {number}", f"{owner.user_id} has fact {number}")
        before = await stored(await cluster.in_service())
        await create(tmp_path, _stack(redis_url, url, nodes))
    assert checked(tmp_path).collections
    await cluster.clear()

    await restore_shards(tmp_path, Qdrant(qdrant_url=url, qdrant_nodes=nodes))

    assert await stored(await cluster.in_service()) == before
    async with stores(cluster, redis_url, ShardConfig(replicas=copies), count=1) as [http]:
        assert len(await StoreApi(http, OWNERS[0]).found("fact", top_k=50)) == _FACTS
    await client.close()


def _stack(redis_url: str, url: str, nodes: str) -> Stack:
    return Stack.model_validate({"redis_url": redis_url, "qdrant_url": url, "qdrant_nodes": nodes})
