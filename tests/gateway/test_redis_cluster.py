"""What is particular to a Redis Cluster, on a real one of six processes; ``make test-cluster`` runs the suites too."""

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress

from redis.asyncio import Redis

from gateway.queue import Hold, JobResult, RunnerOptions
from gateway.queue.runner import Runner
from memloop.wire.errors import MemloopError
from memloop.wire.memory import Namespace
from memloop_state.connecting import primaries
from memloop_state.link import TAGS
from memloop_state.queue.jobs import Lease
from memloop_state.room import redis_state
from tests.fakes.redis_cluster import RedisClusterServers
from tests.gateway.redis_view import keys
from tests.gateway.rig import enqueued, eventually, memory_queue, turns

OPTIONS = RunnerOptions(concurrency=4, lease_s=60, idle_s=60, attempts=3, poll_s=0.2, stop_s=60)


class Handler:
    """Ends each job at once, and counts."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        del hold
        self.runs[lease.job_id] += 1
        return JobResult("completed", "{}")

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        raise AssertionError(lease.job_id)

    async def cancelled(self, lease: Lease) -> JobResult:
        raise AssertionError(lease.job_id)


async def test_writes_of_many_users_lie_in_all_parts_and_two_workers_do_each_once(
    cluster_redis: Redis, cluster: RedisClusterServers
) -> None:
    queue, handler, stop = memory_queue(cluster_redis), Handler(), asyncio.Event()
    users = [Namespace(tenant="t", user_id=f"user{number}") for number in range(60)]
    ids = [await enqueued(queue, turns("I like tea."), namespace=user) for user in users]
    assert {key.split("}")[0].split("{")[1] for key in await keys(cluster_redis, "*:job:*")} == set(TAGS)
    assert all(int(cluster.ask(number, "DBSIZE")) > 0 for number in cluster.primaries())
    assert (await queue.lanes.depth()).jobs == len(ids)
    async with asyncio.TaskGroup() as group:
        for name in ("one", "two"):
            group.create_task(Runner(queue.lanes, handler, OPTIONS, worker=name).run(stop))
        await eventually(lambda: len(handler.runs) == len(ids))
        stop.set()
    assert handler.runs == Counter(ids)


async def test_the_reply_of_a_cancelled_command_reaches_no_other_command(cluster_redis: Redis) -> None:
    for number in range(40):
        await cluster_redis.set(f"key{number}", number)

    async def ask(number: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(0.0001, 0.004)):
                assert int(await cluster_redis.get(f"key{number}") or -1) == number

    ends_at = time.monotonic() + 1.0
    while time.monotonic() < ends_at:
        await asyncio.gather(*(ask(number) for number in range(40)))
    assert [int(await cluster_redis.get(f"key{number}") or -1) for number in range(40)] == list(range(40))


async def test_every_primary_is_found_and_asked_how_full_it_is(
    cluster_redis: Redis, cluster: RedisClusterServers
) -> None:
    addresses = await primaries(cluster_redis)
    assert [address.port for address in addresses] == [cluster.servers[number].port for number in (0, 1, 2)]
    state = await redis_state(cluster_redis)
    assert state.used_bytes > 0
    assert state.durable is False
