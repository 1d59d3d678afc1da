"""An erasure wins over every write that began before it, at two store processes and in every order of their steps."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from redis import Redis

from memloop.wire.errors import Conflict, NotFound
from memloop.wire.memory import (
    BatchResult,
    Buffer,
    Erased,
    ItemPatch,
    MemoryDraft,
    Namespace,
    Source,
    StoreAdd,
)
from memloop.wire.transfer import MemoryLine, NumberedLine, StoreExport, StoreImport
from memory_store.items.documents import from_payload
from memory_store.items.lookup import Owned, every_record
from memory_store.upkeep.jobs import Flushed
from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import Point
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.interleaving import Interleaving
from tests.fakes.plain_vectors import PlainCollection, PlainCollections, at_once
from tests.fakes.redis_server import RedisServer
from tests.memory_store.api import day
from tests.memory_store.two_replicas import Replica, replica

_CHUNKS, _EACH = 4, 250
_SWAPS = 10
_WRITERS_TOKEN, _ERASURES_TOKEN = 5, 9
_OWNER = Namespace(tenant="t", user_id="alice", agent_id="a")
_OTHER_AGENT = _OWNER.model_copy(update={"agent_id": "b"})
_BOB = Namespace(tenant="t", user_id="bob")
_SCOPES = (_OWNER, _OWNER.model_copy(update={"agent_id": None}))

Write = Callable[["History", Replica], Coroutine[object, object, object]]


@pytest.fixture(scope="module")
def own_redis() -> Iterator[Redis]:
    server = RedisServer.start()
    client = Redis(port=server.port, decode_responses=True)
    yield client
    client.close()
    server.stop()


@pytest.fixture
def redis_client(own_redis: Redis) -> Redis:
    """A client that blocks, of an empty Redis: a history waits for nothing but its turns."""
    own_redis.flushdb()  # pyright: ignore[reportUnknownMemberType]
    return own_redis


def add(
    key: str, value: str, *, token: int | None = None, of: Namespace = _OWNER, event: str | None = None
) -> StoreAdd:
    draft = MemoryDraft(key=key, value=value)
    return StoreAdd(namespace=of, drafts=(draft,), timestamp=day(2), fencing_token=token, event_id=event)


@dataclass
class History:
    """What was stored before, and two processes that work on it at once. ``of_job`` are the writes with a token."""

    client: Redis
    schedule: Interleaving
    collections: PlainCollections
    replicas: list[Replica] = field(default_factory=list[Replica])
    city: str = ""
    deleted: str = ""
    lines: list[MemoryLine] = field(default_factory=list[MemoryLine])

    @classmethod
    async def begin(cls, client: Redis, seed: int) -> "History":
        """Two processes after some earlier writes."""
        client.flushdb()  # pyright: ignore[reportUnknownMemberType]
        schedule = Interleaving(seed)
        history = cls(client, schedule, PlainCollections(turn=schedule.turn))
        history.replicas = [await replica(client, history.collections, schedule.turn) for _ in range(2)]
        await history._write_before()
        return history

    async def _write_before(self) -> None:
        one = self.replicas[0]
        [city] = (await one.writer.add(add("City", "seed: Rome", event="e0"))).results
        [pet] = (await one.writer.add(add("Pet", "seed: a cat"))).results
        await one.writer.add(add("Food", "seed: pasta", of=_OTHER_AGENT))
        await one.buffers.put(buffer("seed: hm"))
        self.lines = list((await one.transfer.export(StoreExport(scope=_OWNER))).lines)
        await one.items.delete(Owned("t", pet.item.id), if_version=None)
        self.city, self.deleted = city.item.id, pet.item.id

    def texts(self, of: Namespace) -> list[str]:
        """What is stored of exactly this namespace, in every collection."""
        points = [point for stored in self.collections.stored.values() for point in stored.values()]
        records = [from_payload(point.id, point.payload) for point in points]
        return [record.item.memory for record in records if record.namespace == of]

    async def buffered(self) -> list[str]:
        page = await self.replicas[0].buffers.page("t", _OWNER.user_id)
        return [turn.content for one in page.buffers for turn in one.turns]


def buffer(text: str) -> Buffer:
    return Buffer(namespace=_OWNER, turns=(Source(role="user", content=text),))


async def job(of: History, at: Replica) -> object:
    return await at.writer.add(add("City", "job: Oslo", token=_WRITERS_TOKEN))


async def direct(of: History, at: Replica) -> object:
    return await at.writer.add(add("Work", "direct: pilot"))


async def replay(of: History, at: Replica) -> object:
    return await at.writer.add(add("City", "seed: Rome", token=_WRITERS_TOKEN, event="e0"))


async def restated(of: History, at: Replica) -> object:
    return await at.writer.add(add("City", "restated: Paris", event="e9"))


async def batch(of: History, at: Replica) -> BatchResult:
    return await at.writer.add_batch([add("Car", "batch: red"), add("Car", "batch: blue", of=_BOB)])


async def edit(of: History, at: Replica) -> object:
    return await at.items.edit(Owned("t", of.city), ItemPatch(memory="edit: Rome"), if_version=None)


async def retag(of: History, at: Replica) -> object:
    return await at.items.edit(Owned("t", of.city), ItemPatch(tags=("edit",)), if_version=None)


async def delete(of: History, at: Replica) -> object:
    return await at.items.delete(Owned("t", of.city), if_version=None)


async def recover(of: History, at: Replica) -> object:
    return await at.recovery.recover(Owned("t", of.deleted))


async def accepted_batch(of: History, at: Replica) -> BatchResult:
    return await at.writer.add_batch([add("Job", "accepted_batch: nurse")], began=_WRITERS_TOKEN)


async def restore(of: History, at: Replica) -> object:
    return await at.transfer.take(imported(of, "restore:"))


async def accepted_restore(of: History, at: Replica) -> object:
    return await at.transfer.take(imported(of, "accepted_restore:", began=_WRITERS_TOKEN))


def imported(of: History, prefix: str, *, began: int | None = None) -> StoreImport:
    texts = [line.model_dump_json().replace("seed:", prefix) for line in of.lines]
    numbered = tuple(NumberedLine(number=number, text=text) for number, text in enumerate(texts, start=1))
    return StoreImport(tenant="t", lines=numbered, began=began)


async def buffering(of: History, at: Replica) -> object:
    return await at.buffers.put(buffer("buffering: hm"), token=_WRITERS_TOKEN)


_WRITES: tuple[Write, ...] = (
    job,
    direct,
    replay,
    restated,
    batch,
    accepted_batch,
    edit,
    retag,
    delete,
    recover,
    restore,
    accepted_restore,
    buffering,
)
_BEGAN_BEFORE = {"seed", "job", "buffering", "accepted_batch", "accepted_restore"}
"""Writes whose token is older than the erasure's; they are refused even if they reach the store after it."""


async def erase(of: History, at: Replica, scope: Namespace) -> Erased:
    return await at.items.erase(scope, token=_ERASURES_TOKEN)


@pytest.mark.parametrize("chunk", range(_CHUNKS))
async def test_nothing_that_began_before_an_erasure_comes_back(redis_client: Redis, chunk: int) -> None:
    for seed in range(chunk * _EACH, (chunk + 1) * _EACH):
        await _check(redis_client, seed)


async def _check(client: Redis, seed: int) -> None:
    chosen = random.Random(seed)
    history = await History.begin(client, seed)
    scope = chosen.choice(_SCOPES)
    writes = {write.__name__: write(history, chosen.choice(history.replicas)) for write in chosen.sample(_WRITES, 4)}

    results = await history.schedule.run({"erase": erase(history, chosen.choice(history.replicas), scope), **writes})

    assert isinstance(results["erase"], Erased), f"seed {seed}: {results['erase']!r}"
    left = [*history.texts(_OWNER), *await history.buffered()]
    assert {text for text in left if not _is_later(text, history)} == set(), f"seed {seed}: {history.schedule.steps}"
    _check_what_stays(history, scope, results, seed)


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(_SWAPS), id="few"), pytest.param(range(_SWAPS, 1000), id="all", marks=pytest.mark.slow)],
)
async def test_an_erasure_wins_while_another_collection_takes_over(redis_client: Redis, seeds: Sequence[int]) -> None:
    for seed in seeds:
        await _check_with_a_flush(redis_client, seed)


async def _check_with_a_flush(client: Redis, seed: int) -> None:
    """As above, with a flush at one process; the processes look at the stores' record in between."""
    chosen = random.Random(seed)
    history = await History.begin(client, seed)
    scope = chosen.choice(_SCOPES)
    over = asyncio.Event()
    writes = {write.__name__: write(history, chosen.choice(history.replicas)) for write in chosen.sample(_WRITES, 4)}
    others: dict[str, Coroutine[object, object, object]] = {
        f"watch {number}": watch(one, over) for number, one in enumerate(history.replicas)
    }
    flushing = flush(chosen.choice(history.replicas), over)
    erasing = erase(history, chosen.choice(history.replicas), scope)

    results = await history.schedule.run({"flush": flushing, "erase": erasing, **writes, **others})

    assert isinstance(results["flush"], Flushed), f"seed {seed}: {results['flush']!r}"
    assert isinstance(results["erase"], Erased), f"seed {seed}: {results['erase']!r}"
    assert list(history.collections.stored) == [results["flush"].collection], f"seed {seed}"
    left = [*history.texts(_OWNER), *await history.buffered()]
    assert {text for text in left if not _is_later(text, history)} == set(), f"seed {seed}: {history.schedule.steps}"
    _check_what_stays(history, scope, results, seed)


async def flush(at: Replica, over: asyncio.Event) -> Flushed:
    try:
        return await at.upkeep.flush()
    finally:
        over.set()


async def watch(at: Replica, over: asyncio.Event) -> None:
    """What a process does beside its requests."""
    while not over.is_set():
        await at.membership.catch_up()


def _is_later(text: str, history: History) -> bool:
    """Whether the text comes from a write, without a token, that began when the erasure had ended."""
    name = text.partition(":")[0]
    steps = history.schedule
    return name not in _BEGAN_BEFORE and steps.first(name) > steps.last("erase")


def _check_what_stays(history: History, scope: Namespace, results: dict[str, object], seed: int) -> None:
    refused = [one for one in results.values() if isinstance(one, Exception)]
    assert all(isinstance(one, Conflict | NotFound) for one in refused), f"seed {seed}: {refused!r}"
    assert history.texts(_OTHER_AGENT) == ([] if scope.agent_id is None else ["seed: pasta"])
    assert history.texts(_BOB) == (["batch: blue"] if "batch" in results else [])


@dataclass
class HeldCollection(PlainCollection):
    """A collection whose upserts arrive late."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store them when they are let go."""
        self.reached.set()
        await self.let_go.wait()
        await super().upsert(points)


@dataclass
class HeldCollections(PlainCollections):
    """Collections as one process reaches them: its upserts are held."""

    opened: list[HeldCollection] = field(default_factory=list[HeldCollection])

    async def open(self, spec: CollectionSpec, name: str) -> PlainCollection:
        """The shared collection behind a slow way."""
        await super().open(spec, name)
        self.opened.append(HeldCollection(name, self.stored[name]))
        return self.opened[-1]


async def test_a_write_that_an_erasure_no_longer_waits_for_takes_its_points_back(redis_client: Redis) -> None:
    shared = PlainCollections()
    held = HeldCollections(stored=shared.stored, in_service=shared.in_service)
    quick = await replica(redis_client, shared, at_once)
    slow = await replica(redis_client, held, at_once, open_ms=1)
    late = asyncio.create_task(slow.writer.add(add("City", "Oslo")))
    await held.opened[0].reached.wait()

    await quick.items.erase(_OWNER, token=_ERASURES_TOKEN)
    held.opened[0].let_go.set()

    with pytest.raises(Conflict, match="erased while the write was under way"):
        await late
    assert [len(points) for points in shared.stored.values()] == [0]


async def test_a_write_after_an_erasure_is_stored(redis_client: Redis) -> None:
    shared = PlainCollections()
    one, other = [await replica(redis_client, shared, at_once) for _ in range(2)]
    await one.writer.add(add("City", "Rome", token=_WRITERS_TOKEN))

    await other.items.erase(_OWNER, token=_ERASURES_TOKEN)
    await one.writer.add(add("City", "Oslo"))
    with pytest.raises(Conflict, match="fencing token 5 is older than 9"):
        await one.writer.add(add("City", "Rome", token=_WRITERS_TOKEN))

    [record] = await every_record(one.vectors, AllOf(()))
    assert record.item.memory == "Oslo"


async def test_an_erasure_with_an_older_token_is_refused(redis_client: Redis) -> None:
    one = await replica(redis_client, PlainCollections(), at_once)
    await one.writer.add(add("City", "Rome", token=_ERASURES_TOKEN + 1))

    with pytest.raises(Conflict, match="fencing token 9 is older than 10"):
        await one.items.erase(_OWNER, token=_ERASURES_TOKEN)
