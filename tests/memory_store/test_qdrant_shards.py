"""The backup of a Qdrant cluster holds every shard, and goes back into a cluster of another size."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest
from qdrant_client import AsyncQdrantClient, models

from memloop.wire.errors import InvalidRequest, MemloopError, Unavailable
from memory_store.backup.creating import Stack, create
from memory_store.backup.manifest import FILE, checked
from memory_store.backup.qdrant_shards import Qdrant, back_up_shards, cluster_of
from memory_store.backup.restoring import restore_shards
from tests.fakes.qdrant_cluster import QdrantCluster
from tests.fakes.qdrant_copies import CopiedShards, Copies
from tests.fakes.qdrant_server import QdrantStandIn
from tests.fakes.qdrant_shards import POINTS

NAME = "memloop_m_4"


def points(numbers: Sequence[int]) -> list[models.PointStruct]:
    return [
        models.PointStruct(id=str(UUID(int=number)), vector={"dense": [1.0, 0, 0, 0]}, payload={"number": number})
        for number in numbers
    ]


def copies_of(it: QdrantCluster) -> list[Copies]:
    """Each shard of the collection."""
    return cast(CopiedShards, it.collections[NAME]).copies


@asynccontextmanager
async def cluster(*, keys: int = 0, shards: int = 1) -> AsyncGenerator[QdrantCluster]:
    """Three nodes and a collection of ours with points in its shards, beside one of somebody else."""
    it = QdrantCluster(nodes=3)
    async with it.running_nodes() as urls:
        client = AsyncQdrantClient(url=urls[0], check_compatibility=False)
        for name in ("of_somebody_else", NAME):
            await client.create_collection(
                name,
                vectors_config={"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)},
                sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
                sharding_method=models.ShardingMethod.CUSTOM if keys else None,
                shard_number=1 if keys else shards,
                replication_factor=2,
                write_consistency_factor=2,
                on_disk_payload=True,
            )
        for key in range(keys):
            await client.create_shard_key(NAME, f"key-{key}")
        alias = models.CreateAlias(collection_name=NAME, alias_name="memloop")
        await client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
        await client.close()
        for number, shard in enumerate(copies_of(it)):
            shard.upsert(POINTS, points(range(10 * number, 10 * number + 3)))
        yield it


async def backed_up(it: QdrantCluster, folder: Path, redis_url: str) -> None:
    await create(folder, Stack.model_validate({"redis_url": redis_url, "qdrant_url": it.urls[0]}))


def contents(it: QdrantCluster) -> list[list[dict[str, models.Payload | None]]]:
    """The payloads that each shard holds, once for all copies that are alike."""
    shards = [[{str(one.id): one.payload for one in copy.values()} for copy in shard] for shard in it.copies(NAME)]
    return [[copy for at, copy in enumerate(shard) if copy not in shard[:at]] for shard in shards]


@pytest.mark.parametrize("sharding", [{"keys": 5}, {"shards": 4}], ids=["keys", "numbers"])
@pytest.mark.parametrize("nodes", [1, 3, 5])
async def test_every_shard_goes_back_into_a_cluster_of_any_size(
    sharding: dict[str, int], nodes: int, tmp_path: Path, redis_url: str
) -> None:
    after = QdrantCluster(nodes=nodes)
    async with cluster(**sharding) as before:
        await backed_up(before, tmp_path, redis_url)
        assert before.snapshots.kept == {}, "they are deleted on the nodes"
    async with after.running_nodes() as urls:
        await restore_shards(tmp_path, Qdrant(qdrant_url=urls[0]))
        with pytest.raises(InvalidRequest, match="already"):
            await restore_shards(tmp_path, Qdrant(qdrant_url=urls[0]))
    assert contents(after) == contents(before)
    assert all(len(alike) == 1 and alike[0] for alike in contents(after))
    assert (list(after.collections), after.aliases) == ([NAME], {"memloop": NAME})
    made, wanted = (it.collections[NAME].params.model_dump(exclude_none=True) for it in (after, before))
    assert {name: made[name] for name in wanted} == wanted


async def test_the_copy_with_the_most_points_is_taken_and_never_a_dead_one(tmp_path: Path, redis_url: str) -> None:
    async with cluster(shards=2) as it:
        first, second = copies_of(it)
        next(iter(first.by_node.values())).upsert(POINTS, points([7, 8]))
        node, erased = next(iter(second.by_node.items()))
        erased.upsert(POINTS, points([17, 18]))
        second.missed.add(node)
        await backed_up(it, tmp_path, redis_url)
    snapshots = [json.loads((tmp_path / f"{NAME}.shard-{number}.snapshot").read_text()) for number in (0, 1)]
    assert [{one["payload"]["number"] for one in snapshot} for snapshot in snapshots] == [
        {0, 1, 2, 7, 8},
        {10, 11, 12},
    ]
    parts = checked(tmp_path).shards_of(NAME)
    assert [part.shard and part.shard.copies for part in parts.values()] == [2, 1]


async def test_a_node_that_is_away_costs_nothing_while_all_shards_have_a_copy(tmp_path: Path, redis_url: str) -> None:
    async with cluster(shards=3) as it:
        it.kill(2)
        await backed_up(it, tmp_path, redis_url)
    assert set(checked(tmp_path).shards_of(NAME)) == {0, 1, 2}


async def test_a_backup_takes_a_list_of_nodes_of_which_the_first_is_away(tmp_path: Path, redis_url: str) -> None:
    async with cluster(shards=3) as it:
        closed = "http://127.0.0.1:9"
        urls = f"{closed}, {it.urls[0]}/"
        nodes = ",".join(it.urls)
        given = {"redis_url": redis_url, "qdrant_url": urls, "qdrant_nodes": nodes}
        await create(tmp_path, Stack.model_validate(given))
    assert set(checked(tmp_path).shards_of(NAME)) == {0, 1, 2}


async def test_a_backup_whose_download_fails_leaves_no_snapshot_on_the_nodes(tmp_path: Path, redis_url: str) -> None:
    async with cluster(shards=1) as it:
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / f"{NAME}.shard-0.snapshot").mkdir(parents=True)
        async with cluster_of(Qdrant(qdrant_url=it.urls[0])) as nodes:
            with pytest.raises((OSError, MemloopError)):
                await back_up_shards(tmp_path / "full", nodes, {})
        assert it.snapshots.kept == {}


async def test_a_backup_that_would_lack_a_shard_is_refused(tmp_path: Path, redis_url: str) -> None:
    async with cluster(shards=3) as it:
        it.kill(1)
        it.kill(2)
        with pytest.raises(Unavailable, match=f"No active copy of shard 1 of {NAME}"):
            await backed_up(it, tmp_path, redis_url)
    assert not (tmp_path / FILE).exists()


async def test_a_backup_in_which_a_shard_is_missing_is_no_whole_one(tmp_path: Path, redis_url: str) -> None:
    async with cluster(keys=3) as it:
        await backed_up(it, tmp_path, redis_url)
    manifest = json.loads((tmp_path / FILE).read_text())
    manifest["parts"] = [part for part in manifest["parts"] if "shard-1" not in part["name"]]
    (tmp_path / FILE).write_text(json.dumps(manifest))
    with pytest.raises(InvalidRequest, match="no snapshot of shard 1"):
        checked(tmp_path)


async def test_shards_need_a_cluster(tmp_path: Path, redis_url: str) -> None:
    async with cluster() as it:
        await backed_up(it, tmp_path, redis_url)
    async with QdrantStandIn().running() as url:
        with pytest.raises(InvalidRequest, match="no cluster"):
            await restore_shards(tmp_path, Qdrant(qdrant_url=url))
