"""When embedded vectors wait for the disk, what waits with them, and what a power cut leaves."""

import asyncio
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import qdrant_edge as edge

from memory_store.vectors.edge_counts import FlushedPoints
from memory_store.vectors.edge_files import EdgeFlushes, sync_log
from memory_store.vectors.edge_types import created, to_edge
from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.qdrant_edge import EdgeCollections
from memory_store.vectors.schema import CollectionSpec

_SPEC = CollectionSpec("some/Model-v1", 4)
_NEVER_S = 3600.0


@dataclass
class Disk:
    """A disk under test: how long it says to have taken, and how often it was waited for."""

    took_s: float = 0.0
    syncs: int = 0
    flushes: int = 0
    ready: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.ready.set()

    def sync(self, path: Path) -> float:
        self.syncs += 1
        self.ready.wait()
        sync_log(path)
        return self.took_s

    @contextmanager
    def flushing(self) -> Generator[None]:
        self.flushes += 1
        yield


@dataclass
class Flushed:
    """An open shard with its flushes, which are made by hand."""

    path: Path
    shard: edge.EdgeShard
    flushes: EdgeFlushes
    disk: Disk

    @property
    def whole(self) -> int:
        """The flushes of all files; the syncs of the log enter ``flushing`` too."""
        return self.disk.flushes - self.disk.syncs

    def write(self, first: int, count: int = 1) -> None:
        points = [
            Point(_id(number), (1.0, 0.0, 0.0, 0.0), NO_WORDS, {"n": number}) for number in range(first, first + count)
        ]
        self.shard.update(edge.UpdateOperation.upsert_points([to_edge(point) for point in points]))
        self.flushes.written += count


@pytest.fixture
async def flushed(edge_folder: Path) -> Flushed:
    path, disk = edge_folder / _SPEC.name, Disk()
    shard = created(path, _SPEC)
    flushes = EdgeFlushes(path, shard, FlushedPoints(path), flush_s=_NEVER_S, flushing=disk.flushing, sync=disk.sync)
    it = Flushed(path, shard, flushes, disk)
    await flushes.turn()
    assert it.whole == 1  # a new shard is flushed at once
    return it


def _id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012d}"


async def test_writes_go_on_and_other_tasks_run_while_the_log_waits_for_the_disk(flushed: Flushed) -> None:
    flushed.write(0)
    flushed.disk.ready.clear()
    turn = asyncio.create_task(flushed.flushes.turn())
    while flushed.disk.syncs < 2:  # noqa: ASYNC110 - the disk is awaited in a thread
        await asyncio.sleep(0.001)

    flushed.write(1)
    assert not turn.done()
    flushed.disk.ready.set()
    await turn

    assert flushed.flushes.dirty  # the second write came after the sync began
    await flushed.flushes.close()


async def test_few_writes_are_kept_by_the_log_alone_until_the_shard_is_closed(flushed: Flushed) -> None:
    flushed.write(0, 1_999)
    await flushed.flushes.turn()
    await flushed.flushes.turn()
    assert (flushed.flushes.dirty, flushed.whole) == (False, 1)

    await flushed.flushes.close()
    assert flushed.whole == 2


async def test_a_deletion_is_flushed_once_the_writes_have_paused_because_the_count_is_gone(flushed: Flushed) -> None:
    await flushed.flushes.before_deletion()
    flushed.write(0)
    await flushed.flushes.turn()
    assert flushed.whole == 1

    await flushed.flushes.turn()
    assert flushed.whole == 2
    await flushed.flushes.close()


async def test_a_late_disk_puts_the_flush_off_until_the_log_is_long(flushed: Flushed) -> None:
    flushed.disk.took_s = 0.1
    for first in (0, 2_000, 4_000, 6_000):
        flushed.write(first, 2_000)
        assert flushed.whole == 1
        await flushed.flushes.turn()

    assert flushed.whole == 2
    await flushed.flushes.close()


async def test_a_log_that_has_grown_is_flushed_while_writes_go_on(flushed: Flushed) -> None:
    flushed.write(0, 1_999)
    await flushed.flushes.turn()
    assert flushed.whole == 1

    flushed.write(1_999)
    await flushed.flushes.turn()

    assert flushed.whole == 2
    await flushed.flushes.close()


async def test_after_a_power_cut_the_log_alone_brings_back_what_was_synced(edge_folder: Path) -> None:
    shard = await EdgeCollections(edge_folder, flush_s=_NEVER_S).open(_SPEC, _SPEC.name)
    async with shard.flushes.rest():
        pass
    after = edge_folder.with_suffix(".after")
    shutil.copytree(edge_folder, after)
    for number in range(300):
        await shard.upsert([Point(_id(number), (1, 0, 0, 0), NO_WORDS, {"n": number})])
    await shard.delete(where=AllOf(()))
    await shard.upsert([Point(_id(7), (1, 0, 0, 0), NO_WORDS, {"n": 7})])
    await shard.flushes.turn()
    # Of all that changed since the flush, the disk holds the log and the removal of the count
    shutil.rmtree(after / _SPEC.name / "wal")
    shutil.copytree(edge_folder / _SPEC.name / "wal", after / _SPEC.name / "wal")
    (after / _SPEC.name / "flushed-points").unlink()

    again = await EdgeCollections(after, flush_s=_NEVER_S).open(_SPEC, _SPEC.name)

    page = await again.scroll(where=AllOf(()), limit=500)
    assert [found.payload["n"] for found in page.found] == [7]
    await again.close()
    await shard.close()
    shutil.rmtree(after)


async def test_a_deletion_beside_a_flush_leaves_no_count_that_is_too_high(edge_folder: Path) -> None:
    shard = await EdgeCollections(edge_folder, flush_s=_NEVER_S).open(_SPEC, _SPEC.name)
    for number in range(20):
        await shard.upsert([Point(_id(number), (1, 0, 0, 0), NO_WORDS, {"n": number})])
        await asyncio.gather(shard.flushes.turn(), shard.delete(where=AllOf(())))
        killed = edge_folder.with_suffix(f".{number}")
        shutil.copytree(edge_folder, killed)

        again = await EdgeCollections(killed, flush_s=_NEVER_S).open(_SPEC, _SPEC.name)

        assert await again.count(where=AllOf(())) == 0
        await again.close()
        shutil.rmtree(killed)
    await shard.close()
