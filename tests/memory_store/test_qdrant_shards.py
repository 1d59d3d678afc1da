"""The backup of a Qdrant cluster holds every shard, and goes back into a cluster of another size."""

import json
from pathlib import Path
from typing import Any

import pytest

from memloop.wire.errors import InvalidRequest, Unavailable
from memory_store.backup.creating import Stack, create
from memory_store.backup.manifest import FILE, checked
from memory_store.backup.qdrant_shards import Qdrant
from memory_store.backup.restoring import restore_shards
from tests.fakes.qdrant_snapshots import ClusterStandIn

NAME = "memloop_m_4"
SETTINGS: dict[str, Any] = {
    "vectors": {"dense": {"size": 4, "distance": "Cosine"}},
    "sparse_vectors": {"bm25": {"modifier": "idf"}},
    "shard_number": 1,
    "replication_factor": 2,
    "write_consistency_factor": 2,
    "on_disk_payload": True,
}


def cluster(*, keys: int = 0, shards: int = 1) -> ClusterStandIn:
    """Three nodes and a collection of ours with texts in its shards, beside one of somebody else."""
    made = ClusterStandIn(3)
    made.make("of_somebody_else", **SETTINGS)
    made.make(NAME, **SETTINGS | ({"sharding_method": "custom"} if keys else {"shard_number": shards}))
    for key in range(keys):
        made.add_shard(NAME, f"key-{key}")
    for number, shard in made.shards[NAME].items():
        shard.copies = dict.fromkeys(shard.copies, f"points of {number}")
    made.aliases["memloop"] = NAME
    return made


async def backed_up(it: ClusterStandIn, folder: Path, redis_url: str) -> None:
    async with it.running() as url:
        await create(folder, Stack.model_validate({"redis_url": redis_url, "qdrant_url": url}))


@pytest.mark.parametrize("sharding", [{"keys": 5}, {"shards": 4}], ids=["keys", "numbers"])
@pytest.mark.parametrize("nodes", [1, 3, 5])
async def test_every_shard_goes_back_into_a_cluster_of_any_size(
    sharding: dict[str, int], nodes: int, tmp_path: Path, redis_url: str
) -> None:
    before, after = cluster(**sharding), ClusterStandIn(nodes)
    await backed_up(before, tmp_path, redis_url)
    assert before.snapshots == {}, "they are deleted on the nodes"
    async with after.running() as url:
        await restore_shards(tmp_path, Qdrant(qdrant_url=url))
        with pytest.raises(InvalidRequest, match="already"):
            await restore_shards(tmp_path, Qdrant(qdrant_url=url))
    assert after.contents(NAME) == before.contents(NAME)
    assert (list(after.settings), after.aliases) == ([NAME], {"memloop": NAME})
    assert {name: after.settings[NAME][name] for name in before.settings[NAME]} == before.settings[NAME]


async def test_the_copy_with_the_most_points_is_taken_and_never_a_dead_one(tmp_path: Path, redis_url: str) -> None:
    it = cluster(shards=2)
    it.shards[NAME][0].copies = {0: "all points of 0", 1: "some"}
    it.shards[NAME][1].copies = {1: "all points of 1, and erased ones", 2: "all points of 1"}
    it.shards[NAME][1].dead = {1}
    await backed_up(it, tmp_path, redis_url)
    assert [(tmp_path / f"{NAME}.shard-{number}.snapshot").read_text() for number in (0, 1)] == [
        "all points of 0",
        "all points of 1",
    ]
    parts = checked(tmp_path).shards_of(NAME)
    assert [part.shard and part.shard.copies for part in parts.values()] == [2, 1]


async def test_a_node_that_is_away_costs_nothing_while_all_shards_have_a_copy(tmp_path: Path, redis_url: str) -> None:
    it = cluster(shards=3)
    it.away = {2}
    await backed_up(it, tmp_path, redis_url)
    assert set(checked(tmp_path).shards_of(NAME)) == {0, 1, 2}


async def test_a_backup_that_would_lack_a_shard_is_refused(tmp_path: Path, redis_url: str) -> None:
    it = cluster(shards=3)
    it.away = {1, 2}
    with pytest.raises(Unavailable, match=f"No active copy of shard 1 of {NAME}"):
        await backed_up(it, tmp_path, redis_url)
    assert not (tmp_path / FILE).exists()


async def test_a_backup_in_which_a_shard_is_missing_is_no_whole_one(tmp_path: Path, redis_url: str) -> None:
    await backed_up(cluster(keys=3), tmp_path, redis_url)
    manifest = json.loads((tmp_path / FILE).read_text())
    manifest["parts"] = [part for part in manifest["parts"] if "shard-1" not in part["name"]]
    (tmp_path / FILE).write_text(json.dumps(manifest))
    with pytest.raises(InvalidRequest, match="no snapshot of shard 1"):
        checked(tmp_path)


async def test_shards_need_a_cluster(tmp_path: Path, redis_url: str) -> None:
    await backed_up(cluster(), tmp_path, redis_url)
    async with ClusterStandIn(1, distributed=False).running() as url:
        with pytest.raises(InvalidRequest, match="no cluster"):
            await restore_shards(tmp_path, Qdrant(qdrant_url=url))
