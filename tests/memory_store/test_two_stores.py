"""Two store processes over one collection: lanes are each one's own, so a race can slip past them."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from memloop.wire.errors import Conflict
from memloop.wire.memory import MemoryDraft, StoreAdd
from memloop_service import new_registry
from memloop_state.connecting import connect
from memloop_state.store.erasures import Erasures
from memloop_state.store.service import ServiceRecord
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.embedding.port import Encoder, Vector
from memory_store.items.documents import from_payload
from memory_store.items.guarded import GuardedStore, NamespaceLocks
from memory_store.items.statements import WritePolicy
from memory_store.items.tools import ItemTools
from memory_store.items.writing import Writer
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.upkeep.membership import Membership
from memory_store.vectors.live import Gate, LiveCollection
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.embedder import HashingEncoder
from tests.fakes.plain_vectors import PlainCollections
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import ALICE, day
from tests.memory_store.feeds import feed_of

_SPEC = CollectionSpec("hashing", 64)


@pytest.fixture
def collections() -> PlainCollections:
    return PlainCollections()


@pytest.fixture
async def two_writers(settings: Settings, collections: PlainCollections) -> AsyncIterator[list[Writer]]:
    async with (
        writing(settings, collections, HashingEncoder()) as first,
        writing(settings, collections, HashingEncoder()) as two,
    ):
        yield [first, two]


@asynccontextmanager
async def writing(settings: Settings, collections: PlainCollections, encoder: Encoder) -> AsyncGenerator[Writer]:
    """The writing half of a store process."""
    metrics, gate = Metrics(new_registry()), Gate()
    embedder = BatchingEmbedder(lambda: encoder, metrics=metrics)
    await embedder.start()
    link = connect(settings.redis_url)
    vectors, encoding = LiveCollection(collections), TextEncoding(embedder, Bm25())
    await vectors.open(_SPEC)
    membership = Membership(vectors, encoding, ServiceRecord(link, vectors.site), gate=gate)
    guarded = GuardedStore(vectors, Erasures(link, membership), feed_of(link))
    async with membership.watching():
        yield Writer(ItemTools(vectors, encoding, NamespaceLocks(gate), guarded, metrics), WritePolicy())
    await link.aclose()
    await embedder.close()


def add(value: str, at: int, *, token: int | None = None) -> StoreAdd:
    draft = MemoryDraft(key="City", value=value)
    return StoreAdd(namespace=ALICE, drafts=(draft,), timestamp=day(at), fencing_token=token)


def live(collections: PlainCollections) -> list[str]:
    records = [from_payload(point.id, point.payload) for point in collections.stored[_SPEC.name].values()]
    return [record.item.memory for record in records if record.item.status == "activated"]


async def test_two_stores_that_race_to_one_new_fact_make_one_item(
    collections: PlainCollections, two_writers: list[Writer]
) -> None:
    await asyncio.gather(*(writer.add(add("Rome", 1)) for writer in two_writers))

    assert live(collections) == ["Rome"]


class HeldEncoder(HashingEncoder):
    """An encoder that waits before the city of Oslo until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        if any("Oslo" in text for text in texts):
            self.reached.set()
            self.let_go.wait(PATIENCE_S)
        return super().encode(texts)


async def test_two_live_versions_of_a_race_are_mended_by_the_next_write(
    settings: Settings, collections: PlainCollections
) -> None:
    held = HeldEncoder()
    async with writing(settings, collections, held) as slow, writing(settings, collections, HashingEncoder()) as quick:
        await quick.add(add("Rome", 1))
        late = asyncio.create_task(slow.add(add("Oslo", 2)))
        await asyncio.to_thread(held.reached.wait, PATIENCE_S)
        await quick.add(add("Paris", 3))
        held.let_go.set()
        await late
        assert sorted(live(collections)) == ["Oslo", "Paris"]

        await quick.add(add("Paris", 4))

    assert live(collections) == ["Paris"]


async def test_a_writer_that_loses_its_lane_while_it_embeds_writes_nothing(
    settings: Settings, collections: PlainCollections
) -> None:
    held = HeldEncoder()
    async with writing(settings, collections, held) as slow, writing(settings, collections, HashingEncoder()) as quick:
        late = asyncio.create_task(slow.add(add("Oslo", 1, token=5)))
        await asyncio.to_thread(held.reached.wait, PATIENCE_S)
        await quick.add(add("Paris", 2, token=6))
        held.let_go.set()
        with pytest.raises(Conflict, match="fencing token 5 is older than 6"):
            await late

    assert live(collections) == ["Paris"]
