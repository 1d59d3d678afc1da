"""A turn that moves from the queue to the store is seen, whatever the order in which the two are read."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import permutations

import pytest
from redis.asyncio import Redis

from gateway.memory.jobs import MemoryQueue
from gateway.memory.pending import PendingWrites, Standing, read_beside
from memloop.wire.memory import Namespace
from memloop_state.queue.jobs import Lease
from tests.fakes.processes import PATIENCE_S
from tests.gateway.rig import ALICE, ONE_WORKER, enqueued, leased, memory_queue, turns

FACT = "I live in Oslo."
WORKER = ("buffer", "leave", "store", "unbuffer")
"""What a worker does: it buffers the turn, ends the job, and later stores the memory and clears the buffer."""
SEARCH = ("buffers", "vectors")
"""What the store reads, in this order."""


def merged(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All orders of both in which each keeps its own."""
    if not (first and second):
        yield tuple(first or second)
        return
    yield from ((first[0], *rest) for rest in merged(first[1:], second))
    yield from ((second[0], *rest) for rest in merged(first, second[1:]))


ORDERS = [order for both in merged(WORKER, SEARCH) for order in merged(both, ("queue",))]


@dataclass
class Steps:
    """Lets several tasks take their steps in one order; a step that the order has no more comes at once."""

    order: list[str]
    _taken: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def at(self, step: str) -> AsyncGenerator[None]:
        async with self._taken:
            await self._taken.wait_for(lambda: step not in self.order or self.order[0] == step)
            yield
            if self.order and self.order[0] == step:
                del self.order[0]
            self._taken.notify_all()


@dataclass
class Store:
    """Buffers and memories, read one after the other as the store reads them."""

    steps: Steps
    buffers: set[str] = field(default_factory=set[str])
    memories: set[str] = field(default_factory=set[str])
    searches: int = 0

    async def search(self) -> set[str]:
        self.searches += 1
        async with self.steps.at("buffers"):
            found = set(self.buffers)
        async with self.steps.at("vectors"):
            return found | self.memories


class HeldPending(PendingWrites):
    """Reads the queue when it is its turn."""

    def __init__(self, redis: Redis, steps: Steps) -> None:
        super().__init__(redis, wait_s=PATIENCE_S)
        self._steps = steps

    async def of_user(self, namespace: Namespace) -> Standing:
        async with self._steps.at("queue"):
            return await super().of_user(namespace)


@pytest.fixture
async def queue(redis: Redis) -> MemoryQueue:
    return memory_queue(redis)


async def ended(queue: MemoryQueue, lease: Lease) -> None:
    """End the write."""
    assert await queue.lanes.finish(lease, status="completed", record="{}", keep_ms=60_000)


async def works(queue: MemoryQueue, lease: Lease, store: Store) -> None:
    """A worker whose model buffers the turn and later decides."""
    async with store.steps.at("buffer"):
        store.buffers.add(FACT)
    async with store.steps.at("leave"):
        await ended(queue, lease)
    async with store.steps.at("store"):
        store.memories.add(FACT)
    async with store.steps.at("unbuffer"):
        store.buffers.clear()


def test_the_orders_are_all_that_there_are() -> None:
    steps = (*WORKER, *SEARCH, "queue")
    kept = [one for one in permutations(steps) if all(_in_order(one, of) for of in (WORKER, SEARCH))]
    assert sorted(ORDERS) == sorted(kept)
    assert len(ORDERS) == 105


def _in_order(order: Sequence[str], steps: Sequence[str]) -> bool:
    return [step for step in order if step in steps] == list(steps)


async def test_a_moving_turn_is_seen_in_every_order_of_the_steps(queue: MemoryQueue, redis: Redis) -> None:
    missed: list[tuple[str, ...]] = []
    for order in ORDERS:
        store = Store(Steps(list(order)))
        await enqueued(queue, turns(FACT))
        lease = await leased(queue)
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(works(queue, lease, store))
            reading = group.create_task(read_beside(HeldPending(redis, store.steps), ALICE, store.search))
        standing, found = reading.result()
        assert standing.complete
        if FACT not in found | {turn.content for turn in standing.pending}:
            missed.append(order)
    assert missed == []


async def test_memories_that_were_erased_between_the_two_looks_are_not_returned(
    queue: MemoryQueue, redis: Redis
) -> None:
    store = Store(Steps(["buffers", "vectors", "erase", "queue"]), memories={FACT})

    async def erases() -> None:
        async with store.steps.at("erase"):
            token = await queue.lanes.take_lane(ALICE.lane(), lease_ms=60_000, force=True)
            assert token is not None
            store.memories.clear()
            await queue.lanes.leave_lane(ALICE.lane(), token)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(erases())
        reading = group.create_task(read_beside(HeldPending(redis, store.steps), ALICE, store.search))
    assert reading.result()[1] == set()


async def test_a_user_whose_queue_is_still_is_searched_once(queue: MemoryQueue, redis: Redis) -> None:
    await enqueued(queue, turns(FACT))
    bob = Namespace(tenant="local", user_id="bob")
    await enqueued(queue, turns(FACT), namespace=bob)
    lease = await queue.lanes.take(ONE_WORKER, partition=queue.lanes.keys.of_name(bob.lane()))
    while lease is not None and lease.lane != bob.lane():
        lease = await queue.lanes.take(ONE_WORKER, partition=queue.lanes.keys.of_name(bob.lane()))
    assert lease is not None
    await ended(queue, lease)
    store = Store(Steps([]))
    standing, _ = await read_beside(PendingWrites(redis, wait_s=PATIENCE_S), ALICE, store.search)
    assert [turn.content for turn in standing.pending] == [FACT]
    assert store.searches == 1


async def test_a_search_that_fails_ends_the_reading_of_the_queue(redis: Redis) -> None:
    async def fails() -> None:
        raise ValueError("no store")

    with pytest.raises(ValueError, match="no store"):
        await read_beside(HeldPending(redis, Steps(["never"])), ALICE, fails)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("changed_s", "elapsed_s", "held"),
    [(None, 0.0, True), (None, 29.0, True), (None, 31.0, False), (1.0, 0.5, True), (1.0, 0.95, False), (0.5, 2, False)],
)
def test_what_the_lane_lacked_had_left_before_the_search(
    changed_s: float | None, elapsed_s: float, *, held: bool
) -> None:
    assert Standing(newest_token=1, changed_s=changed_s).held_for(elapsed_s) is held
