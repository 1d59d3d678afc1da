"""An erasure wins over every write that began before it, at two store processes and in every order of their steps."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from redis import Redis

from memloop.wire.errors import Conflict, NotFound, Unavailable
from memloop.wire.memory import Erased, Namespace
from memloop_state.store.erasures import Claim, Moved
from memory_store.items.documents import every_record
from memory_store.items.guarded import repeated_when_moved
from memory_store.upkeep.copying import Progress
from memory_store.upkeep.jobs import Flushed
from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import Point
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.plain_vectors import PlainCollection, PlainCollections, at_once
from tests.fakes.redis_server import RedisServer
from tests.fakes.virtual_clock import VirtualClock
from tests.memory_store.erase_histories import (
    BOB,
    ERASURES_TOKEN,
    OTHER_AGENT,
    OWNER,
    SCOPES,
    WRITERS_TOKEN,
    WRITES,
    History,
    add,
    check_what_stays,
    erase,
    is_later,
    restore,
    watch,
)
from tests.memory_store.two_replicas import Replica, replica

_HISTORIES = 250
_SWAPS = 10
_STEPS_OF_A_COPY = 150
"""Of all tasks together, roughly."""
Copying = Callable[[History, Replica, asyncio.Event], Coroutine[object, object, object]]


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    """The time of both processes and of Redis: a loaded machine runs the same histories."""
    clock = VirtualClock()
    clock.instead_of_monotonic(monkeypatch)
    return clock


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(_HISTORIES), id="few"),
        pytest.param(range(_HISTORIES, 2000), id="all", marks=pytest.mark.slow),
    ],
)
async def test_nothing_that_began_before_an_erasure_comes_back(
    redis_client: Redis, clock: VirtualClock, seeds: Sequence[int]
) -> None:
    for seed in seeds:
        await _check(redis_client, clock, seed)


async def _check(client: Redis, clock: VirtualClock, seed: int) -> None:
    chosen = random.Random(seed)
    history = await History.begin(client, seed, clock)
    scope = chosen.choice(SCOPES)
    writes = {write.__name__: write(history, chosen.choice(history.replicas)) for write in chosen.sample(WRITES, 4)}

    results = await history.schedule.run({"erase": erase(history, chosen.choice(history.replicas), scope), **writes})

    assert isinstance(results["erase"], Erased), f"seed {seed}: {results['erase']!r}"
    left = [*history.texts(OWNER), *await history.buffered()]
    assert {text for text in left if not is_later(text, history)} == set(), f"seed {seed}: {history.schedule.steps}"
    check_what_stays(history, scope, results, seed)


_SEEDS = [pytest.param(range(_SWAPS), id="few"), pytest.param(range(_SWAPS, 1000), id="all", marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", _SEEDS)
async def test_an_erasure_wins_while_another_collection_takes_over(
    redis_client: Redis, clock: VirtualClock, seeds: Sequence[int]
) -> None:
    for seed in seeds:
        history, results = await _with_a_copy(await History.begin(redis_client, seed, clock), seed, flush)
        flushed = results["copy"]
        assert isinstance(flushed, Flushed), f"seed {seed}: {flushed!r}"
        assert list(history.collections.stored) == [flushed.collection], f"seed {seed}"


@pytest.mark.parametrize("seeds", _SEEDS)
async def test_an_erasure_wins_while_another_model_takes_over_and_a_restore_is_under_way(
    redis_client: Redis, clock: VirtualClock, seeds: Sequence[int]
) -> None:
    for seed in seeds:
        begun = await History.begin(redis_client, seed, clock)
        history, results = await _with_a_copy(begun, seed, reembed, restores=True)
        assert results["copy"] == "completed", f"seed {seed}: {results['copy']!r}"
        assert {one.vectors.name for one in history.replicas} == {"memloop_other_4"}, f"seed {seed}"


async def _with_a_copy(
    history: History, seed: int, copy: Copying, *, restores: bool = False
) -> tuple[History, dict[str, object]]:
    """As above, with a copy by one process, and all else begun at some step of it."""
    scope, results = await _run_with_a_copy(history, seed, copy, restores=restores)
    assert isinstance(results["erase"], Erased), f"seed {seed}: {results['erase']!r}"
    left = [*history.texts(OWNER), *await history.buffered()]
    assert {text for text in left if not is_later(text, history)} == set(), f"seed {seed}: {history.schedule.steps}"
    check_what_stays(history, scope, results, seed)
    return history, results


async def _run_with_a_copy(
    history: History, seed: int, copy: Copying, *, restores: bool
) -> tuple[Namespace, dict[str, object]]:
    """The scope of the erasure, and all results. The processes look at the stores' record in between."""
    chosen = random.Random(seed)
    scope = chosen.choice(SCOPES)
    over = asyncio.Event()
    kinds = {*chosen.sample(WRITES, 4), *([restore] if restores else [])}
    writes = {write.__name__: write(history, chosen.choice(history.replicas)) for write in WRITES if write in kinds}
    others: dict[str, Coroutine[object, object, object]] = {
        f"watch {number}": watch(one, over) for number, one in enumerate(history.replicas)
    }
    copying = copy(history, chosen.choice(history.replicas), over)
    erasing = erase(history, chosen.choice(history.replicas), scope)

    after = {name: chosen.randrange(_STEPS_OF_A_COPY) for name in ("erase", *writes)}
    work = {"copy": copying, "erase": erasing, **writes, **others}
    return scope, await history.schedule.run(work, after=after, watch=history.watch_erasure)


async def flush(of: History, at: Replica, over: asyncio.Event) -> Flushed:
    try:
        return await at.upkeep.flush()
    finally:
        over.set()


async def reembed(of: History, at: Replica, over: asyncio.Event) -> str:
    """How a re-embedding ends. It keeps the collection of the model before, out of service."""
    before = at.vectors.name
    try:
        job: Progress | None = await at.upkeep.reembed("other")
        while job is None or job.status == "running":
            job = await at.upkeep.job()
        of.left_behind.add(before)
        return job.error or job.status
    finally:
        over.set()


_STALLED = [pytest.param((*range(4), 62), id="few"), pytest.param(range(4, 200), id="all", marks=pytest.mark.slow)]


@pytest.mark.parametrize("copy", [flush, reembed])
@pytest.mark.parametrize("stall_s", [8.0, 40.0, 90.0], ids=["copies lapse", "writes lapse", "erasures lapse"])
@pytest.mark.parametrize("seeds", _STALLED)
async def test_an_erasure_that_succeeds_has_won_on_a_machine_that_stands_still(
    redis_client: Redis, clock: VirtualClock, seeds: Sequence[int], stall_s: float, copy: Copying
) -> None:
    """Steps take longer than a copy, a write or an erasure may: each fails with an error that asks for a repetition.

    What a copy that failed leaves behind is no request's: only the collection in service counts. That is the one that
    the alias names, whichever store has ended the copy.
    """
    for seed in seeds:
        history = await History.begin(redis_client, seed, clock, stall_s=stall_s)
        scope, results = await _run_with_a_copy(history, seed, copy, restores=copy is reembed)
        copied, erased = results["copy"], results["erase"]
        assert not isinstance(copied, Flushed) or history.collections.in_service[-1] == copied.collection, (
            f"seed {seed}"
        )
        if not isinstance(erased, Erased):
            assert isinstance(erased, Unavailable), f"seed {seed}: {erased!r}"
            continue
        left = [*history.texts_in_service(OWNER), *await history.buffered()]
        assert {one for one in left if not is_later(one, history)} == set(), f"seed {seed}: {history.schedule.steps}"
        refused = [one for one in results.values() if isinstance(one, Exception)]
        assert all(isinstance(one, Conflict | NotFound | Unavailable) for one in refused), f"seed {seed}: {refused!r}"
        assert history.texts_in_service(OTHER_AGENT) == ([] if scope.agent_id is None else ["seed: pasta"])


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

    await quick.items.erase(OWNER, token=ERASURES_TOKEN)
    held.opened[0].let_go.set()

    with pytest.raises(Conflict, match="erased while the write was under way"):
        await late
    assert [len(points) for points in shared.stored.values()] == [0]


async def test_a_write_that_is_repeated_began_with_its_first_try(redis_client: Redis) -> None:
    one, other = [await replica(redis_client, PlainCollections(), at_once) for _ in range(2)]
    tries: list[str] = []

    @repeated_when_moved
    async def writes() -> None:
        tries.append("begun")
        await one.guarded.begin(OWNER)
        await other.items.erase(OWNER, token=ERASURES_TOKEN)
        raise Moved(one.membership)

    with pytest.raises(Conflict, match="erased"):
        await writes()
    assert tries == ["begun", "begun"]


async def test_a_claim_that_the_first_try_lost_stays_refused(redis_client: Redis) -> None:
    one = await replica(redis_client, PlainCollections(), at_once)
    refused: list[list[bool]] = []

    async def begin() -> None:
        answers = await one.guarded.begin_all([Claim(OWNER), Claim(BOB)])
        refused.append([isinstance(answer, Conflict) for answer in answers])

    @repeated_when_moved
    async def writes() -> None:
        if refused:
            await begin()
            return
        async with one.erasures.erasing(OWNER, ERASURES_TOKEN):
            await begin()
        raise Moved(one.membership)

    await writes()
    assert refused == [[True, False], [True, False]]


async def test_a_write_after_an_erasure_is_stored(redis_client: Redis) -> None:
    shared = PlainCollections()
    one, other = [await replica(redis_client, shared, at_once) for _ in range(2)]
    await one.writer.add(add("City", "Rome", token=WRITERS_TOKEN))

    await other.items.erase(OWNER, token=ERASURES_TOKEN)
    await one.writer.add(add("City", "Oslo"))
    with pytest.raises(Conflict, match="fencing token 5 is older than 9"):
        await one.writer.add(add("City", "Rome", token=WRITERS_TOKEN))

    [record] = await every_record(one.vectors, AllOf(()))
    assert record.item.memory == "Oslo"


async def test_an_erasure_with_an_older_token_is_refused(redis_client: Redis) -> None:
    one = await replica(redis_client, PlainCollections(), at_once)
    await one.writer.add(add("City", "Rome", token=ERASURES_TOKEN + 1))

    with pytest.raises(Conflict, match="fencing token 9 is older than 10"):
        await one.items.erase(OWNER, token=ERASURES_TOKEN)
