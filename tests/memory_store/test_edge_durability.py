"""What Qdrant Edge keeps when its process is killed, and what it refuses."""

import asyncio
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from memloop.wire.chat import Json
from memloop_service import new_registry
from memory_store.metrics import Metrics
from memory_store.vectors.edge_collection import EdgeInUse
from memory_store.vectors.edge_counts import EdgeDamaged
from memory_store.vectors.filters import AllOf, Equals
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.qdrant_edge import EdgeCollections, QdrantEdge
from memory_store.vectors.schema import CollectionSpec, EmbeddingMismatch

_SPEC = CollectionSpec("some/Model-v1", 4)

_WRITER = """
import asyncio, os, sys, uuid
from pathlib import Path
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec

async def main():
    store = QdrantEdge(Path(sys.argv[1]), flush_s=3600)
    await store.open(CollectionSpec("some/Model-v1", 4))
    for number in range(200):
        await store.upsert([Point(str(uuid.UUID(int=number)), (1.0, 0.0, 0.0, 0.0), NO_WORDS, {"n": number})])
    print("acknowledged", flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_every_acknowledged_write_survives_kill_9_without_a_flush(edge_folder: Path) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITER, str(edge_folder), stdout=asyncio.subprocess.PIPE
    )
    assert (await writer.communicate())[0] == b"acknowledged\n"
    assert writer.returncode == -9

    store = QdrantEdge(edge_folder, flush_s=60)
    await store.open(_SPEC)

    page = await store.scroll(where=AllOf(()), limit=500)
    assert [found.payload["n"] for found in page.found] == list(range(200))
    await store.close()


async def test_a_store_that_was_closed_opens_again_with_its_points(edge_folder: Path) -> None:
    store = QdrantEdge(edge_folder, flush_s=60)
    for number in range(3):
        await store.open(_SPEC)
        await store.upsert([Point(_id(number), (1, 0, 0, 0), NO_WORDS, {"n": number})])
        await store.close()

    await store.open(_SPEC)

    assert await store.count(where=AllOf(())) == 3
    await store.close()


async def test_the_timer_flushes_while_serving(edge_folder: Path) -> None:
    shard = await EdgeCollections(edge_folder, flush_s=0.01).open(_SPEC, _SPEC.name)
    await shard.upsert([Point(_id(1), (1, 0, 0, 0), NO_WORDS, {})])
    async with asyncio.timeout(60):
        while shard.flushes.dirty:  # noqa: ASYNC110 - the shard tells, it does not call
            await asyncio.sleep(0.01)

    await shard.close()


async def test_a_folder_that_is_in_use_is_refused_with_the_way_out(edge_folder: Path) -> None:
    first, second = QdrantEdge(edge_folder, flush_s=60), QdrantEdge(edge_folder, flush_s=60)
    await first.open(_SPEC)

    with pytest.raises(EdgeInUse, match="MEMLOOP_DATA_DIR"):
        await second.open(_SPEC)

    await first.close()


async def test_another_model_does_not_start_empty_beside_memories(edge_folder: Path) -> None:
    await _make(edge_folder, _SPEC)

    with pytest.raises(
        EmbeddingMismatch, match=r"memloop_some_model-v1_4.*MEMLOOP_EMBEDDING_MODEL.*reembed.*START_EMPTY"
    ):
        await QdrantEdge(edge_folder, flush_s=60).open(CollectionSpec("other", 4))


async def test_another_model_may_start_empty_when_allowed(edge_folder: Path) -> None:
    await _make(edge_folder, _SPEC)

    await _make(edge_folder, CollectionSpec("other", 8, start_empty=True))

    await _make(edge_folder, CollectionSpec("other", 8))
    with pytest.raises(EmbeddingMismatch, match="memories are in memloop_other_8"):
        await _make(edge_folder, _SPEC)


async def test_a_collection_of_another_dimension_under_the_same_name_is_refused(edge_folder: Path) -> None:
    await _make(edge_folder, _SPEC)
    (edge_folder / _SPEC.name).rename(edge_folder / CollectionSpec("some/Model-v1", 5).name)
    (edge_folder / "in-service").unlink()

    with pytest.raises(EmbeddingMismatch, match="4 dimensions"):
        await QdrantEdge(edge_folder, flush_s=60).open(CollectionSpec("some/Model-v1", 5))


async def test_flushes_are_timed_and_one_that_fails_is_counted(edge_folder: Path) -> None:
    registry = new_registry()
    metrics = Metrics(registry)
    store = QdrantEdge(edge_folder, flush_s=60, flushing=metrics.flushing)
    await store.open(_SPEC)
    await store.upsert([Point(_id(1), (1.0, 0.0, 0.0, 0.0), NO_WORDS, {})])
    await store.close()
    with suppress(OSError), metrics.flushing():
        raise OSError("no space left")

    assert registry.get_sample_value("memory_store_flush_seconds_count") == 2
    assert registry.get_sample_value("memory_store_flush_failed_total") == 1


def test_the_collections_name_carries_model_and_dimension() -> None:
    assert CollectionSpec("sentence-transformers/all-MiniLM-L6-v2", 384).name == (
        "memloop_sentence-transformers_all-minilm-l6-v2_384"
    )


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.rglob(pattern))


async def _make(folder: Path, spec: CollectionSpec) -> None:
    store = QdrantEdge(folder, flush_s=60)
    await store.open(spec)
    await store.close()


def _id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012d}"


@pytest.mark.parametrize(
    ("file", "size", "problem"),
    [
        ("edge_config.json", None, "edge_config.json is missing"),
        ("edge_config.json", 20, "edge_config.json"),
        ("mutable_id_tracker.mappings", None, "of 200 memories can be read"),
        ("mutable_id_tracker.mappings", 500, "of 200 memories can be read"),
        ("segment.json", None, ""),
        ("segment.json", 20, ""),
        ("in-service", 3, "names no collection"),
    ],
)
async def test_a_damaged_file_is_named_at_the_start_and_nothing_is_removed(
    edge_folder: Path, file: str, size: int | None, problem: str
) -> None:
    store = QdrantEdge(edge_folder, flush_s=60)
    await store.open(_SPEC)
    for start in range(0, 200, 100):
        await store.upsert(
            [Point(_id(number), (1, 0, 0, 0), NO_WORDS, {"n": number}) for number in range(start, start + 100)]
        )
    await store.close()
    [damaged] = _files(edge_folder, file)
    if size is None:
        damaged.unlink()
    else:
        os.truncate(damaged, size)
    before = _files(edge_folder, "page_*")

    with pytest.raises(EdgeDamaged, match=f"is damaged: .*{problem}.*Restore a backup"):
        await QdrantEdge(edge_folder, flush_s=60).open(_SPEC)

    assert before == _files(edge_folder, "page_*")


async def _filled(folder: Path) -> None:
    store = QdrantEdge(folder, flush_s=60)
    await store.open(_SPEC)
    fields: Json = {"tenant": "t", "user_id": "ada", "tags": ["a", "b"], "place": 7}
    for start in range(0, 2000, 50):
        await store.upsert([Point(_id(start + more), (1, 0, 0, 0), NO_WORDS, fields) for more in range(50)])
    await store.close()


def _zero(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(bytes(min(file.stat().st_size, 200_000)))


async def test_fields_that_are_lost_are_named_at_the_start(edge_folder: Path) -> None:
    await _filled(edge_folder)
    [damaged] = _files(edge_folder, "payload_storage/tracker.dat")
    _zero(damaged)
    with pytest.raises(EdgeDamaged, match=r"memories have lost their fields. Restore a backup"):
        await QdrantEdge(edge_folder, flush_s=60).open(_SPEC)


async def test_a_payload_index_that_is_damaged_is_made_anew(
    edge_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await _filled(edge_folder)
    damaged = [path for path in _files(edge_folder, "tracker.dat") if "user_id" in str(path)]
    assert damaged
    for path in damaged:
        _zero(path)
    store = QdrantEdge(edge_folder, flush_s=60)
    await store.open(_SPEC)
    assert await store.count(where=Equals("user_id", "ada")) == 2000
    await store.close()
    assert "the index of user_id" in caplog.text


async def test_a_file_over_which_edge_panics_is_named_at_the_start(edge_folder: Path) -> None:
    await _filled(edge_folder)
    damaged = next(path for path in _files(edge_folder, "status.dat") if "null" in str(path))
    os.truncate(damaged, damaged.stat().st_size // 2)
    with pytest.raises(EdgeDamaged, match="Restore a backup"):
        await QdrantEdge(edge_folder, flush_s=60).open(_SPEC)


async def test_erasures_after_the_last_flush_are_no_damage(edge_folder: Path) -> None:
    shard = await EdgeCollections(edge_folder, flush_s=3600).open(_SPEC, _SPEC.name)
    await shard.upsert([Point(_id(number), (1, 0, 0, 0), NO_WORDS, {"n": number}) for number in range(10)])
    async with shard.flushes.rest():
        pass
    await shard.delete(where=AllOf(()))
    shutil.copytree(edge_folder, edge_folder.with_suffix(".killed"))

    again = await EdgeCollections(edge_folder.with_suffix(".killed"), flush_s=3600).open(_SPEC, _SPEC.name)

    assert await again.count(where=AllOf(())) == 0
    await again.close()
    await shard.close()
    shutil.rmtree(edge_folder.with_suffix(".killed"))
