"""Tenants take turns in every queue, whatever one of them has queued: the order of lanes on real Redis."""

import asyncio
import itertools
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from gateway.long_read.records import TIERS
from gateway.queue import Hold, QueueRules
from gateway.settings import WorkerSettings
from memloop_state.queue.jobs import Lease, Submission
from memloop_state.queue.lanes import LaneQueue
from tests.gateway.redis_view import command, connected, keys
from tests.gateway.rig import ONE_WORKER, eventually, rig, script
from tests.gateway.test_runner import QUICK, Handler, running

ACTS = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("take"), st.just(0), st.just(0)),
    st.tuples(st.sampled_from(["finish", "abandon"]), st.integers(0, 9), st.just(0)),
)
NAMES = itertools.count()
ONE_SLOT = replace(QUICK, concurrency=1, lease_s=60, idle_s=60, spare=0)


async def fresh(redis: Redis, *, weights: Mapping[str, int] | None = None, name: str = "memory") -> LaneQueue:
    return LaneQueue(redis, name, tiers=TIERS, rules=QueueRules(weights or {}))


async def submit(queue: LaneQueue, tenant: str, job_id: str, lane: str) -> None:
    index = queue.keys.of_id(job_id).key("events", tenant, "user")
    fields = {"status": "queued", "tenant": tenant}
    assert await queue.submit(Submission(job_id, lane, int(time.time() * 1000), index, fields))


async def taken(queue: LaneQueue) -> Lease | None:
    """The lease of the next lane; its job runs from now on."""
    return await queue.take(ONE_WORKER)


async def drained(queue: LaneQueue) -> list[str]:
    """The jobs that wait, in the order in which one worker slot takes them."""
    order: list[str] = []
    while (lease := await taken(queue)) is not None:
        order.append(lease.job_id)
        assert await queue.finish(lease, status="completed", record="{}", keep_ms=60_000)
    return order


@dataclass
class Model:
    """Which lanes wait and run, and how many jobs of others each waiting tenant has seen go before it."""

    weights: Mapping[str, int]
    lanes: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    runs: dict[str, Lease] = field(default_factory=dict[str, Lease])
    passed: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])

    def waiting(self, tenant: str) -> list[str]:
        return [lane for lane, jobs in self.lanes.items() if jobs and lane[0] == tenant and lane not in self.runs]

    def settle(self) -> None:
        """A tenant's count begins when it begins to wait, and is void when none of its lanes waits."""
        for tenant in "0123":
            if not self.waiting(tenant):
                self.passed.pop(tenant, None)
            else:
                self.passed.setdefault(tenant, Counter())

    def begin(self, lease: Lease) -> None:
        """The job is its lane's next, and no waiting tenant has been passed by another more often than its weight."""
        lane, tenant = lease.lane, lease.tenant
        assert lane in self.waiting(tenant)
        assert lease.job_id == self.lanes[lane][0]
        self.runs[lane] = lease
        self.passed.pop(tenant)
        for other, counts in self.passed.items():
            counts[tenant] += 1
            assert counts[tenant] <= self.weights.get(tenant, 1), f"{tenant} passed {other} too often"

    def end(self, lease: Lease, *, done: bool) -> None:
        del self.runs[lease.lane]
        if done:
            assert self.lanes[lease.lane].popleft() == lease.job_id


async def played(queue: LaneQueue, acts: Sequence[tuple[str, int, int]], model: Model) -> None:
    """Do the acts and hold each take against the model; at the end run the queue empty."""
    for number, (act, one, two) in enumerate(acts):
        if act == "submit":
            lane = f"{one}/{two}"
            await submit(queue, str(one), f"{number}.{queue.name}", lane)
            model.lanes[lane].append(f"{number}.{queue.name}")
        elif act == "take":
            await take_one(queue, model)
        elif model.runs:
            await end_one(queue, model, list(model.runs.values())[one % len(model.runs)], done=act == "finish")
        model.settle()
    while any(model.lanes.values()):
        await take_one(queue, model)
        for lease in list(model.runs.values()):
            await end_one(queue, model, lease, done=True)
        model.settle()


async def take_one(queue: LaneQueue, model: Model) -> None:
    """A lane is taken if and only if one waits."""
    lease = await taken(queue)
    assert (lease is None) == (not model.passed)
    if lease is not None:
        model.begin(lease)
        model.settle()


async def end_one(queue: LaneQueue, model: Model, lease: Lease, *, done: bool) -> None:
    if done:
        assert await queue.finish(lease, status="completed", record="{}", keep_ms=60_000)
    else:
        await queue.abandon(lease)
    model.end(lease, done=done)


@pytest.mark.parametrize("weights", [{}, {"1": 3, "2": 2}], ids=["equal", "weighted"])
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(ACTS, max_size=60))
async def test_no_tenant_waits_for_more_than_another_ones_weight(
    redis_url: str, weights: Mapping[str, int], acts: Sequence[tuple[str, int, int]]
) -> None:
    async with connected(redis_url) as redis:
        queue = await fresh(redis, weights=weights, name=f"memory{next(NAMES)}")
        await played(queue, acts, Model(weights))
        assert [key for key in await keys(redis, f"*:{queue.name}*") if f":changed:{queue.name}:" not in key] == []
        assert await command(redis, "EXISTS", queue.keys.partitions[0].key("queued-bytes")) == 0


async def test_a_tenant_with_a_long_queue_goes_before_another_one_once(redis: Redis) -> None:
    queue = await fresh(redis)
    for number in range(300):
        await submit(queue, "loud", f"loud{number:03}", f"loud/{number}")
    await taken(queue)
    await submit(queue, "quiet", "quiet", "quiet/user")
    assert (await drained(queue))[:3] == ["loud001", "quiet", "loud002"]


async def test_jobs_of_one_user_do_not_cost_a_tenant_its_turns(redis: Redis) -> None:
    queue = await fresh(redis)
    for number in range(3):
        await submit(queue, "one", f"one{number}", "one/user")
        await submit(queue, "two", f"two{number}", f"two/{number}")
    assert await drained(queue) == ["one0", "two0", "one1", "two1", "one2", "two2"]


async def test_a_tenant_gets_as_many_jobs_in_turn_as_its_weight(redis: Redis) -> None:
    queue = await fresh(redis, weights={"heavy": 3})
    for number in range(4):
        await submit(queue, "light", f"l{number}", f"light/{number}")
        await submit(queue, "heavy", f"h{number}", f"heavy/{number}")
    assert await drained(queue) == ["l0", "h0", "h1", "h2", "l1", "h3", "l2", "l3"]


async def test_a_tier_orders_the_reads_of_its_own_tenant_only(redis: Redis) -> None:
    queue = await fresh(redis)
    await submit(queue, "loud", "f", "flex:loud/f")
    for number in range(3):
        await submit(queue, "loud", f"p{number}", f"priority:loud/{number}")
    await submit(queue, "quiet", "q", "flex:quiet/q")
    assert await drained(queue) == ["p0", "q", "p1", "p2", "f"]


async def test_a_forgotten_job_gives_its_place_to_the_next_of_its_lane(redis: Redis) -> None:
    queue = await fresh(redis)
    for job_id in ("a", "b"):
        await submit(queue, "t", job_id, "t/ben")
    await queue.forget("t/ben", "a")
    assert (await queue.depth()).tenants == 1
    assert await drained(queue) == ["b"]


async def test_a_forgotten_or_cancelled_lane_waits_no_longer(redis: Redis) -> None:
    queue = await fresh(redis)
    for job_id in ("a", "b", "c"):
        await submit(queue, "t", job_id, job_id)
    await queue.forget("a", "a")
    assert await queue.cancel("b", "b", record="{}", keep_ms=60_000) == "cancelled"
    assert await drained(queue) == ["c"]


async def test_a_worker_with_one_slot_takes_the_other_tenants_job_next(redis: Redis) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def work(lease: Lease, hold: Hold) -> None:
        del lease, hold
        began.set()
        await go_on.wait()

    queue, handler = LaneQueue(redis, "memory"), Handler(work)
    for number in range(20):
        await submit(queue, "loud", f"loud{number:02}", f"loud/{number}")
    async with running(queue, handler, options=ONE_SLOT):
        async with asyncio.timeout(60):
            await began.wait()
        await submit(queue, "quiet", "quiet", "quiet/user")
        go_on.set()
        await eventually(lambda: len(handler.order) == 21)
    assert handler.order[:3] == ["loud00", "loud01", "quiet"]


async def test_tenants_can_be_passed_over_and_keep_their_turn(redis: Redis) -> None:
    queue = await fresh(redis)
    for tenant in ("a", "b", "c"):
        for number in range(2):
            await submit(queue, tenant, f"{tenant}{number}", f"{tenant}/{number}")
    third = await queue.take(ONE_WORKER, passing=["a", "b"])
    assert third is not None
    assert (third.job_id, third.tenant) == ("c0", "c")
    assert await queue.take(ONE_WORKER, passing=["a", "b", "c", "d"]) is None
    assert await drained(queue) == ["a0", "b0", "c1", "a1", "b1"]


async def test_while_one_tenant_has_all_slots_another_one_gets_the_spare_one(redis: Redis) -> None:
    begun: list[str] = []
    go_on = asyncio.Event()

    async def work(lease: Lease, hold: Hold) -> None:
        del hold
        begun.append(lease.job_id)
        if lease.tenant == "loud":
            await go_on.wait()

    queue, handler = LaneQueue(redis, "memory"), Handler(work)
    for number in range(5):
        await submit(queue, "loud", f"loud{number}", f"loud/{number}")
    async with running(queue, handler, options=replace(ONE_SLOT, concurrency=2, spare=1)):
        await eventually(lambda: len(begun) == 2)
        for number in range(3):
            await submit(queue, "quiet", f"quiet{number}", f"quiet/{number}")
        await eventually(lambda: len(handler.order) == 3)
        assert begun == ["loud0", "loud1", "quiet0", "quiet1", "quiet2"]
        go_on.set()
        await eventually(lambda: len(handler.order) == 8)


async def test_the_operators_weights_hold_in_every_queue(redis_url: str) -> None:
    async with rig(redis_url, script("x"), tenant_weights="acme=4, beta=2") as it:
        assert it.work.queues
        assert all(queue.rules.weights == {"acme": 4, "beta": 2} for queue in it.work.queues)


@pytest.mark.parametrize("weights", ["acme", "acme=0", "acme=-1", "acme=x", "=2", "acme=2;beta=1"])
def test_wrong_weights_are_refused(weights: str) -> None:
    with pytest.raises(ValueError, match="MEMLOOP_TENANT_WEIGHTS needs tenant=weight"):
        WorkerSettings.model_validate({"tenant_weights": weights})
