"""A store's look at the agreement may be late: what it saw then must not undo what its own copy has begun since."""

import asyncio
import dataclasses
from pathlib import Path

from redis.asyncio import Redis

from memloop_service import new_registry
from memloop_state.connecting import connect
from memloop_state.store.service import Seen, ServiceRecord, Serving
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.upkeep.membership import Membership, Prepared
from memory_store.vectors.filters import AllOf
from memory_store.vectors.live import Gate, LiveCollection
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec, successor
from tests.fakes.embedder import HashingEncoder
from tests.fakes.plain_vectors import PlainCollections

_SPEC = CollectionSpec("hashing", 64)


class LateRecord(ServiceRecord):
    """Hands out what it has read only while ``released`` is set."""

    def __init__(self, link: Redis, site: str) -> None:
        super().__init__(link, site)
        self.read, self.released = asyncio.Event(), asyncio.Event()
        self.released.set()

    async def look(self, store: str, *, gen: str, prepared: str) -> Seen:
        seen = await super().look(store, gen=gen, prepared=prepared)
        self.read.set()
        await self.released.wait()
        return seen


async def test_a_look_from_before_a_copy_leaves_the_target_of_the_copy_open(
    settings: Settings, edge_folder: Path
) -> None:
    link = connect(settings.redis_url)
    vectors = QdrantEdge(edge_folder, flush_s=60)
    await vectors.open(_SPEC)
    embedder = BatchingEmbedder(HashingEncoder, metrics=Metrics(new_registry()))
    record = LateRecord(link, vectors.site)
    membership = Membership(vectors, TextEncoding(embedder, Bm25()), record, gate=Gate())
    await membership.catch_up()
    record.read.clear()
    record.released.clear()
    late = asyncio.create_task(membership.catch_up())
    await record.read.wait()

    membership.own_copy = "copy"
    name = successor(vectors.name)
    target = await vectors.collections.open(_SPEC, name)
    membership.prepare(Prepared(Serving(name, _SPEC.model, _SPEC.dimension), target, copy="copy"))
    record.released.set()
    await late

    assert await target.count(where=AllOf(())) == 0
    assert membership.next_collection is target
    await membership.forget()
    await vectors.close()
    await link.aclose()


class DecidedMeanwhile(ServiceRecord):
    """Between its look at a copy that seems dead and the end of it, the copy's store goes on and decides."""

    async def abandon(self, copy: str, *, own: bool) -> None:
        await self.renew(copy, "")
        await super().abandon(copy, own=own)

    async def clear(self, copy: str, job: str = "") -> None:
        await self.decide(copy)
        await super().clear(copy, job)


class SeemsLapsed(DecidedMeanwhile):
    """Read the copy when its lease was over."""

    async def look(self, store: str, *, gen: str, prepared: str) -> Seen:
        seen = await super().look(store, gen=gen, prepared=prepared)
        if seen.service is None or seen.service.copy is None:
            return seen
        copy = dataclasses.replace(seen.service.copy, lapsed=True)
        return dataclasses.replace(seen, service=dataclasses.replace(seen.service, copy=copy))


async def test_a_copy_that_is_decided_after_it_seemed_dead_is_put_in_force(settings: Settings) -> None:
    link = connect(settings.redis_url)
    shared = PlainCollections()
    mine, other = [await _member(link, shared, kind) for kind in (ServiceRecord, SeemsLapsed)]
    target = Serving(successor(_SPEC.name), _SPEC.model, _SPEC.dimension)
    await shared.open(_SPEC, target.name)
    record = ServiceRecord(link, mine.site)
    assert await record.claim(mine.gen, "copy", target, "")

    await other.catch_up()
    await record.decide("copy")
    await mine.apply_decision("copy")

    assert await shared.serving() == target.name
    await link.aclose()


async def _member(link: Redis, shared: PlainCollections, record: type[ServiceRecord]) -> Membership:
    vectors = LiveCollection(shared)
    await vectors.open(_SPEC)
    embedder = BatchingEmbedder(HashingEncoder, metrics=Metrics(new_registry()))
    member = Membership(vectors, TextEncoding(embedder, Bm25()), record(link, vectors.site), gate=Gate())
    await member.catch_up()
    return member
