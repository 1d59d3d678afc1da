"""Nothing changes the files of an embedded store while they are packed."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from memloop.wire.memory import MemoryItem
from memloop_service import new_registry
from memloop_state.connecting import connect
from memloop_state.store.erasures import Erasures
from memloop_state.store.service import ServiceRecord
from memloop_state.store.tenants import Buffers
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.items.documents import Record, to_payload
from memory_store.items.guarded import GuardedStore, NamespaceLocks
from memory_store.items.items import Items
from memory_store.items.tools import ItemTools
from memory_store.metrics import Metrics
from memory_store.upkeep.membership import Membership
from memory_store.vectors.filters import AllOf
from memory_store.vectors.live import Gate
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.qdrant_edge import EdgeCollections, QdrantEdge
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.embedder import HashingEncoder
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.feeds import feed_of

_SPEC = CollectionSpec("some/Model-v1", 4)
_NOW = datetime(2026, 3, 1, tzinfo=UTC)


def point(number: int) -> Point:
    item = MemoryItem(
        id=str(UUID(int=number)),
        memory="Rome",
        key="City",
        memory_type="LongTermMemory",
        user_id="u",
        valid_from=_NOW,
        created_at=_NOW,
        updated_at=_NOW,
        expires_at=_NOW,
        hash="h",
    )
    return Point(item.id, (1, 0, 0, 0), NO_WORDS, to_payload(Record("t", item, "c", confirmed_at=_NOW)))


async def test_expired_memories_are_removed_only_after_the_files_are_packed(edge_folder: Path, redis_url: str) -> None:
    gate, metrics = Gate(), Metrics(new_registry())
    vectors = QdrantEdge(edge_folder, flush_s=3600)
    await vectors.open(_SPEC)
    await vectors.upsert([point(1)])
    link = connect(redis_url)
    encoding = TextEncoding(BatchingEmbedder(HashingEncoder, metrics=metrics), Bm25())
    erasures = Erasures(link, Membership(vectors, encoding, ServiceRecord(link, vectors.site), gate=gate))
    guarded = GuardedStore(vectors, erasures, feed_of(link))
    tomorrow = _NOW + timedelta(days=1)
    items = Items(
        ItemTools(vectors, encoding, NamespaceLocks(gate), guarded, metrics, clock=lambda: tomorrow),
        erasures=erasures,
        buffers=Buffers(link, max_turns=10),
        feed=feed_of(link),
        deleted_life=timedelta(days=1),
    )

    async with gate.exclusive():
        sweep = asyncio.create_task(items.remove_expired())
        await asyncio.sleep(0.05)
        assert await vectors.count(where=AllOf(())) == 1

    assert await asyncio.wait_for(sweep, PATIENCE_S) == 1
    assert await vectors.count(where=AllOf(())) == 0
    await vectors.close()


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
        await collection.upsert([point(len(flushed))])
        flushed.append(flushes)
        await asyncio.sleep(0.002)
    assert len(flushed) > 3
    assert set(flushed) == {before}

    packing.result().unlink()
    async with asyncio.timeout(PATIENCE_S):
        while flushes == before:  # noqa: ASYNC110 - a timer in the store counts, it does not call
            await asyncio.sleep(0.002)
    await collection.close()
