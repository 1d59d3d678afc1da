"""Nothing changes the files of an embedded store while they are packed."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from memory_store.settings import Settings
from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.qdrant_edge import EdgeCollections, QdrantEdge
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import StoreApi
from tests.memory_store.conftest import app_over, serving
from tests.memory_store.set_clock import SetClock

_SPEC = CollectionSpec("some/Model-v1", 4)


async def test_expired_memories_are_removed_only_after_the_files_are_packed(settings: Settings) -> None:
    vectors, clock = QdrantEdge(settings.data_dir, flush_s=3600), SetClock()
    app = app_over(vectors, settings.model_copy(update={"sweep_s": 0.01}), clock=clock)
    async with serving(app) as http:
        await StoreApi(http).add("Guest", "Bo stays.", expires_at=clock.time + timedelta(hours=1))
        async with app.state.gate.exclusive():
            clock.pass_days(1)
            await asyncio.sleep(0.05)
            assert await vectors.count(where=AllOf(())) == 1

        async with asyncio.timeout(PATIENCE_S):
            while await vectors.count(where=AllOf(())):  # noqa: ASYNC110 - the sweep does not call
                await asyncio.sleep(0.01)


async def test_the_flush_timer_rests_while_files_are_packed(edge_folder: Path) -> None:
    flushes = 0

    @contextmanager
    def counting() -> Generator[None]:
        nonlocal flushes
        flushes += 1
        yield

    collections = EdgeCollections(edge_folder, flush_s=0.001, flushing=counting)
    collection = await collections.open(_SPEC, _SPEC.name)
    await collections.serve(_SPEC.name)
    (edge_folder / _SPEC.name / "ballast").write_bytes(bytes(1 << 27))  # packing takes many periods of the timer
    packing = asyncio.create_task(collections.archive(collection))
    await asyncio.sleep(0)
    before = flushes
    flushed: list[int] = []
    while not packing.done():
        await collection.upsert([Point(str(UUID(int=len(flushed))), (1, 0, 0, 0), NO_WORDS, {})])
        flushed.append(flushes)
        await asyncio.sleep(0.002)
    assert len(flushed) > 3
    assert set(flushed) == {before}

    packing.result().unlink()
    async with asyncio.timeout(PATIENCE_S):
        while flushes == before:  # noqa: ASYNC110 - a timer in the store counts, it does not call
            await asyncio.sleep(0.002)
    await collection.close()
