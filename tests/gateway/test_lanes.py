"""The lane queue on real Redis: durability, order, leases, fencing."""

import asyncio
import math
import time
from unittest.mock import ANY

import pytest
from redis.asyncio import Redis

from memloop.wire.errors import DependencyError
from memloop.wire.memory import Namespace
from memloop_state.owners import Owner
from memloop_state.queue.jobs import Depth, Lease, Submission, Worker
from memloop_state.queue.lanes import LaneQueue
from memloop_state.steps import Partition, Partitions
from tests.fakes.redis_server import RedisServer
from tests.gateway.dead_workers import been_silent
from tests.gateway.redis_view import command, connected, keys

LEASE_MS = 60_000


@pytest.fixture
async def queue(redis: Redis) -> LaneQueue:
    return LaneQueue(redis, "memory")


def part(redis: Redis) -> Partition:
    """Where the lane of ``t/ben`` lies, and so the jobs "a", "b" and "c"."""
    return Partitions(redis).of_name("t/ben")


def index(queue: LaneQueue) -> str:
    return queue.keys.of_name("t/ben").key("events", "t", "ben")


async def submit(queue: LaneQueue, *job_ids: str, lane: str = "t/ben") -> None:
    for job_id in job_ids:
        assert await queue.submit(Submission(job_id, lane, int(time.time() * 1000), index(queue), {"status": "queued"}))


def worker(name: str = "one", *, lease_ms: int = LEASE_MS, idle_ms: int = LEASE_MS) -> Worker:
    return Worker(name, lease_ms, idle_ms)


async def next_lease(queue: LaneQueue, by: Worker | None = None) -> Lease:
    """The lease of the next job."""
    lease = await queue.take(by or worker())
    assert lease is not None
    return lease


async def claimed(queue: LaneQueue) -> Lease:
    """The lease of a job whose worker has been silent."""
    lease = await queue.claim(worker("two"))
    assert lease is not None
    return lease


async def finish(queue: LaneQueue, lease: Lease) -> bool:
    return await queue.finish(lease, status="completed", record="{}", keep_ms=60_000)


async def test_depth_includes_the_wait_of_the_oldest_lane(queue: LaneQueue) -> None:
    assert (await queue.depth()).waiting_since_ms is None
    before_ms = int(time.time() * 1000)
    await submit(queue, "a", lane="t/ben")
    await asyncio.sleep(0.02)
    await submit(queue, "b", lane="t/bob")
    first = (await queue.depth()).waiting_since_ms
    await next_lease(queue)
    second = (await queue.depth()).waiting_since_ms
    await next_lease(queue)

    assert first is not None
    assert second is not None
    assert before_ms - 5 <= first <= second - 20
    assert await queue.depth() == Depth(jobs=2, oldest_created_ms=ANY, waiting_since_ms=None)


async def test_jobs_of_a_lane_come_one_after_another_in_their_queue_order(queue: LaneQueue) -> None:
    await submit(queue, "a", "b", "c")
    done: list[str] = []
    for _ in range(3):
        lease = await next_lease(queue)
        done.append(lease.job_id)
        assert await finish(queue, lease)
    assert done == ["a", "b", "c"]


async def test_a_held_lane_gives_nothing_to_a_second_worker_and_passes_on_when_it_is_free(queue: LaneQueue) -> None:
    await submit(queue, "a", "b")
    held = await next_lease(queue)
    assert await queue.take(worker("two")) is None
    await finish(queue, held)
    assert (await next_lease(queue, worker("two"))).job_id == "b"


async def test_nothing_is_left_of_the_queue_when_all_is_done(queue: LaneQueue, redis: Redis) -> None:
    await submit(queue, "a")
    await finish(queue, await next_lease(queue))
    here = part(redis)
    assert await keys(redis) == sorted(
        [here.hidden("changed", "memory", "t/ben"), here.key("events", "t", "ben"), here.key("fence"), here.job("a")]
    )
    assert 0 < await redis.pttl(here.hidden("changed", "memory", "t/ben")) <= 60_000


async def test_a_job_is_submitted_once(queue: LaneQueue) -> None:
    await submit(queue, "a")
    again = Submission("a", "t/ben", 0, index(queue), {"status": "queued"})
    assert await queue.submit(again) is False
    await finish(queue, await next_lease(queue))
    assert (await queue.depth()).jobs == 0


async def test_a_retried_job_keeps_its_place_and_its_lane_waits_for_it(queue: LaneQueue) -> None:
    await submit(queue, "a", "b")
    await queue.retry(await next_lease(queue), counter="failures", delay_ms=3000, error="no")
    assert await queue.take(worker()) is None
    assert 0 < await queue.promote_due() <= 3.0
    await asyncio.sleep(3.01)
    assert await queue.promote_due() == math.inf
    lease = await next_lease(queue)
    assert (lease.job_id, lease.failures, lease.starts) == ("a", 1, 2)


async def test_a_job_of_a_dead_worker_goes_to_another_with_a_higher_token(queue: LaneQueue) -> None:
    await submit(queue, "a")
    dead = await next_lease(queue, worker("dead", idle_ms=0))
    lease = await claimed(queue)
    assert (lease.job_id, lease.starts, lease.failures, lease.outages) == ("a", 2, 0, 0)
    assert lease.token > dead.token


async def test_a_holder_that_lost_its_lane_can_write_nothing(queue: LaneQueue) -> None:
    await submit(queue, "a")
    old = await next_lease(queue, worker("slow", idle_ms=0))
    new = await claimed(queue)
    assert await queue.beat(old) == "lost"
    assert await finish(queue, old) is False
    assert await queue.retry(old, counter="failures", delay_ms=1, error="") is False
    await queue.abandon(old)
    assert await queue.beat(new) == "held"
    assert await finish(queue, new) is True


async def test_a_heartbeat_keeps_a_long_job_from_being_stolen(queue: LaneQueue, redis: Redis) -> None:
    await submit(queue, "a")
    lease = await next_lease(queue, worker("busy"))
    lock = part(redis).key("lock", "memory", "t/ben")
    for _ in range(3):
        await been_silent(redis, "busy")
        await command(redis, "PEXPIRE", lock, str(LEASE_MS // 2))
        assert await queue.beat(lease) == "held"
        assert await redis.pttl(lock) > LEASE_MS // 2
        assert await queue.claim(worker("two")) is None
    await been_silent(redis, "busy")
    assert (await claimed(queue)).job_id == "a"


async def test_a_worker_that_was_silent_does_not_claim_a_lane_that_it_runs_itself(queue: LaneQueue) -> None:
    await submit(queue, "a")
    lease = await next_lease(queue, worker(idle_ms=0))
    assert await queue.claim(worker(), running=[lease.lane]) is None
    assert await queue.beat(lease) == "held"


async def test_a_lane_whose_worker_died_and_whose_job_was_forgotten_takes_new_jobs(queue: LaneQueue) -> None:
    await submit(queue, "a")
    await next_lease(queue, worker("dead", idle_ms=0))
    await queue.forget("t/ben", "a")
    assert await queue.claim(worker("two")) is None
    await submit(queue, "b")
    assert (await next_lease(queue, worker("two"))).job_id == "b"


async def test_a_lock_that_expired_lets_the_lane_wait_with_the_next_job(queue: LaneQueue) -> None:
    await submit(queue, "a")
    await next_lease(queue, worker("dead", lease_ms=20))
    await asyncio.sleep(0.05)
    await submit(queue, "b")
    lease = await next_lease(queue, worker("two"))
    assert lease.job_id == "a"


async def test_an_abandoned_job_is_not_counted_and_comes_again(queue: LaneQueue) -> None:
    await submit(queue, "a")
    await queue.abandon(await next_lease(queue))
    lease = await next_lease(queue)
    assert (lease.job_id, lease.starts) == ("a", 1)


async def test_a_dead_letter_keeps_the_payload_and_frees_the_lane(queue: LaneQueue, redis: Redis) -> None:
    await queue.submit(Submission("a", "t/ben", 0, index(queue), {"status": "queued", "payload": "p"}))
    await submit(queue, "b")
    await queue.finish(await next_lease(queue), status="failed", record="{}", keep_ms=0, dead="why")
    ((_, letter),) = await command(redis, "XRANGE", part(redis).key("dead"), "-", "+")
    where = {"tenant": "", "index": index(queue), "bytes": "0"}
    assert letter == {"job": "a", "lane": "t/ben", "error": "why"} | where
    assert await redis.hget(part(redis).job("a"), "payload") == "p"
    assert await redis.ttl(part(redis).job("a")) == -1
    assert (await next_lease(queue)).job_id == "b"


async def test_a_finished_job_expires_and_its_payload_is_gone(queue: LaneQueue, redis: Redis) -> None:
    await queue.submit(Submission("a", "t/ben", 0, index(queue), {"status": "queued", "payload": "p"}))
    await finish(queue, await next_lease(queue))
    assert await redis.hget(part(redis).job("a"), "payload") is None
    assert 0 < await redis.pttl(part(redis).job("a")) <= 60_000


async def test_a_forgotten_job_loses_its_lease_and_its_lane_goes_on(queue: LaneQueue) -> None:
    await submit(queue, "a", "b")
    lease = await next_lease(queue)
    assert (await queue.forget("t/ben", "a"))[0] == "in_progress"
    assert await queue.beat(lease) == "lost"
    await queue.abandon(lease)
    assert (await next_lease(queue)).job_id == "b"


async def test_an_eraser_waits_for_the_lane_and_jobs_wait_for_the_eraser(queue: LaneQueue) -> None:
    await submit(queue, "a", "b")
    held = await next_lease(queue)
    assert await queue.take_lane("t/ben", lease_ms=LEASE_MS, force=False) is None
    await finish(queue, held)
    token = await queue.take_lane("t/ben", lease_ms=LEASE_MS, force=False)
    assert token is not None
    assert token > held.token
    assert await queue.take(worker()) is None
    await queue.leave_lane("t/ben", token)
    await asyncio.sleep(0.55)
    await queue.promote_due()
    assert (await next_lease(queue)).job_id == "b"


async def test_tokens_grow_even_when_redis_lost_its_data(queue: LaneQueue, redis: Redis) -> None:
    await submit(queue, "a")
    before = (await next_lease(queue)).token
    await command(redis, "FLUSHALL")
    await asyncio.sleep(0.002)
    await submit(queue, "a")
    assert (await next_lease(queue)).token > before


async def test_depth_counts_unfinished_jobs_and_finds_the_oldest(queue: LaneQueue) -> None:
    for job_id, created_ms in (("a", 1000), ("b", 2000)):
        await queue.submit(Submission(job_id, f"t/{job_id}", created_ms, index(queue), {"status": "queued"}))
    depth = await queue.depth()
    assert (depth.jobs, depth.oldest_created_ms) == (2, 1000)


async def test_a_lane_name_is_any_text(queue: LaneQueue) -> None:
    await submit(queue, "a", lane="t/Ünï|code\n*{x}")
    lease = await next_lease(queue)
    assert lease.lane == "t/Ünï|code\n*{x}"
    assert await finish(queue, lease)


async def test_without_redis_every_call_is_an_outage() -> None:
    server = RedisServer.start()
    async with connected(server.url) as client:
        queue = LaneQueue(client, "memory")
        server.stop()
        with pytest.raises(DependencyError):
            await queue.take(worker())
        with pytest.raises(DependencyError):
            await submit(queue, "a")


async def test_an_index_ends_with_the_last_of_its_jobs(redis: Redis) -> None:
    queue = LaneQueue(redis, "memory", keep_ms=60_000)
    await submit(queue, "a", "b")
    await finish(queue, await next_lease(queue))
    assert await redis.pttl(index(queue)) == -1  # "b" waits
    await finish(queue, await next_lease(queue))
    assert 0 < await redis.pttl(index(queue)) <= 60_000
    await submit(queue, "c")
    assert await redis.pttl(index(queue)) == -1
    lease = await next_lease(queue)
    await queue.finish(lease, status="failed", record="{}", keep_ms=600_000, dead="no", keeps_work=True)
    assert 60_000 < await redis.pttl(index(queue)) <= 600_000


async def test_an_owner_finds_a_job_that_is_put_back_for_as_long_as_it_waits(queue: LaneQueue, redis: Redis) -> None:
    ben = Namespace(tenant="t", user_id="ben")
    fields = {"status": "queued", "payload": "p"}
    await queue.submit(Submission("a", "t/ben", 0, index(queue), fields, owners=[Owner(ben, 0)], kind="events"))
    lease = await next_lease(queue)
    await queue.finish(lease, status="failed", record="{}", keep_ms=60_000, dead="no", keeps_work=True)
    owned = part(redis).hidden("owned", ben.lane())
    assert 0 < await redis.pttl(owned) <= 60_000
    assert await queue.requeue("t/ben", "a", record="{}", created_ms=0)
    assert await redis.pttl(owned) == -1


async def test_jobs_that_are_gone_leave_a_long_index(queue: LaneQueue, redis: Redis) -> None:
    old = [f"old{number}" for number in range(100)]
    await submit(queue, *old)
    await redis.delete(*(part(redis).job(job_id) for job_id in old))
    await submit(queue, *(f"new{number}" for number in range(40)))
    left = await command(redis, "ZRANGE", index(queue), "0", "-1")
    assert len(left) < 112
    assert sum(id_.startswith("new") for id_ in left) == 40
