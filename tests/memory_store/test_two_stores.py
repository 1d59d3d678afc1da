"""Two store processes over one collection: lanes are each one's own, so a race can slip past them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from memloop.service import new_registry
from memloop.wire.memory import MemoryDraft, StoreAdd
from memory_store.documents import within
from memory_store.embedder import BatchingEmbedder
from memory_store.encoding import TextEncoding
from memory_store.fencing import Fence
from memory_store.lanes import Lanes
from memory_store.metrics import Metrics
from memory_store.redis_link import connect
from memory_store.settings import Settings
from memory_store.sparse import Bm25
from memory_store.vectors.port import VectorStore
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec
from memory_store.writing import WritePolicy, Writer, every_record
from tests.fakes.embedder import HashingEncoder
from tests.memory_store.api import ALICE, day


@pytest.fixture
async def vectors(settings: Settings) -> AsyncIterator[VectorStore]:
    shared = QdrantEdge(settings.data_dir, flush_s=60)
    await shared.open(CollectionSpec("hashing", 64))
    yield shared
    await shared.close()


@pytest.fixture
async def two_writers(settings: Settings, vectors: VectorStore) -> AsyncIterator[list[Writer]]:
    metrics = Metrics(new_registry())
    embedder = BatchingEmbedder(HashingEncoder, metrics=metrics)
    await embedder.start()
    link = connect(settings.redis_url)
    encoding = TextEncoding(embedder, Bm25())
    yield [
        Writer(vectors, encoding, lanes=Lanes(), fence=Fence(link), policy=WritePolicy(), metrics=metrics)
        for _ in range(2)
    ]
    await link.aclose()
    await embedder.close()


def add(value: str, at: int) -> StoreAdd:
    return StoreAdd(namespace=ALICE, drafts=(MemoryDraft(key="City", value=value),), timestamp=day(at))


async def live(vectors: VectorStore) -> list[str]:
    records = await every_record(vectors, within(ALICE))
    return [record.item.memory for record in records if record.item.status == "activated"]


async def test_two_stores_that_race_to_one_new_fact_make_one_item(
    vectors: VectorStore, two_writers: list[Writer]
) -> None:
    await asyncio.gather(*(writer.add(add("Rome", 1)) for writer in two_writers))

    assert await live(vectors) == ["Rome"]


async def test_two_live_versions_of_a_race_are_mended_by_the_next_write(
    vectors: VectorStore, two_writers: list[Writer]
) -> None:
    first, second = two_writers
    await first.add(add("Rome", 1))
    await asyncio.gather(first.add(add("Oslo", 2)), second.add(add("Paris", 3)))
    assert sorted(await live(vectors)) == ["Oslo", "Paris"]

    await first.add(add("Paris", 4))

    assert await live(vectors) == ["Paris"]
