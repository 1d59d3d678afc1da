"""Every memory of a user is on one shard; whoever is forgotten is forgotten on all of them."""

import logging
from collections.abc import Sequence

import pytest
from qdrant_client import AsyncQdrantClient, models

from memloop.wire.memory import Namespace
from memory_store.items.documents import of_tenant, within
from memory_store.settings import Settings
from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.schema import CollectionSpec
from memory_store.vectors.server_setup import ShardConfig
from tests.memory_store.api import StoreApi
from tests.memory_store.conftest import app_over, serving
from tests.memory_store.qdrant.cluster import Cluster

_SPEC = CollectionSpec("hashing", 64)
_USERS = 20
_FACTS = 5
_SHARDS = 6


def _points(tenant: str, first: int) -> list[Point]:
    owners = [f"user {number}" for number in range(_USERS) for _ in range(_FACTS)]
    return [
        Point(
            f"00000000-0000-0000-0000-{first + at:012}",
            (1.0,) + (0.0,) * 63,
            NO_WORDS,
            {"tenant": tenant, "user_id": user},
        )
        for at, user in enumerate(owners)
    ]


async def _by_shard(client: AsyncQdrantClient, name: str, user: str) -> Sequence[int]:
    """How many of the user's memories each shard has, as the server counts them."""
    of_user = models.Filter(must=[models.FieldCondition(key="user_id", match=models.MatchValue(value=user))])
    keys = [one.key for one in (await client.list_shard_keys(name)).shard_keys or ()]
    counts = [await client.count(name, of_user, exact=True, shard_key_selector=[key]) for key in keys]
    return [counted.count for counted in counts]


@pytest.mark.slow
async def test_a_users_memories_are_on_one_shard_and_forgotten_there(cluster: Cluster) -> None:
    vectors, client = cluster.vectors(ShardConfig(shards=_SHARDS)), cluster.client()
    await vectors.open(_SPEC)
    await vectors.upsert([*_points("a", 0), *_points("b", 1000)])
    distributed = isinstance(await client.cluster_status(), models.ClusterStatusOneOf1)
    for number in range(_USERS if distributed else 0):
        counts = await _by_shard(client, vectors.name, f"user {number}")
        assert sorted(filter(None, counts)) in ([2 * _FACTS], [_FACTS, _FACTS])

    await vectors.delete(where=within(Namespace(tenant="a", user_id="user 3")))
    assert await vectors.count(where=AllOf(())) == (2 * _USERS - 1) * _FACTS
    await vectors.delete(where=of_tenant("a"))
    assert await vectors.count(where=AllOf(())) == _USERS * _FACTS
    assert await vectors.count(where=of_tenant("b")) == _USERS * _FACTS
    await vectors.close()
    await client.close()


async def test_a_flush_rewrites_an_earlier_versions_collection_with_one_shard_per_user(
    cluster: Cluster, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    client = cluster.client()
    await client.create_collection(
        _SPEC.name,
        vectors_config={"dense": models.VectorParams(size=64, distance=models.Distance.COSINE)},
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        shard_number=_SHARDS,
    )
    texts = [f"blue harbour {number}" for number in range(9)]
    async with serving(app_over(cluster.vectors(ShardConfig(shards=_SHARDS)), settings)) as http:
        store = StoreApi(http)
        for text in texts:
            await store.add(text.title(), text)
        await client.delete_payload(_SPEC.name, keys=["owner"], points=models.Filter())
        before = await store.found("blue harbour", top_k=10)
        flushed = await http.post("/v1/admin/flush")
        after = await store.found("blue harbour", top_k=10)

    [warning] = [record for record in caplog.records if record.name.startswith("memory_store.vectors.server")]
    assert warning.levelno == logging.WARNING
    assert "POST /v1/admin/flush" in warning.getMessage()
    assert flushed.status_code == 200, flushed.text
    assert sorted(before) == sorted(after) == texts
    if isinstance(await client.cluster_status(), models.ClusterStatusOneOf1):
        counts = await _by_shard(client, flushed.json()["collection"], store.namespace.user_id)
        assert sorted(filter(None, counts)) == [len(texts)]
    await client.close()
