"""The users of a tenant with unfinished writes are found without a look at another tenant's writes."""

import pytest
from redis.asyncio import Redis

from gateway.memory.jobs import MemoryJob, MemoryQueue, new_event_id
from gateway.queue import Lease
from memloop.wire.memory import Namespace, Scope, Source
from tests.gateway.redis_view import command
from tests.gateway.rig import leased, memory_queue

TENANT = "acme"
EVERYTHING = Scope(tenant=TENANT)


@pytest.fixture
async def queue(redis: Redis) -> MemoryQueue:
    return memory_queue(redis)


async def write(queue: MemoryQueue, user: str, tenant: str = TENANT, **ids: str) -> None:
    namespace = Namespace(tenant=tenant, user_id=user, **ids)
    turns = (Source(role="user", content="I like tea."),)
    await queue.enqueue(MemoryJob(event_id=new_event_id(namespace), namespace=namespace, turns=turns))


async def begin(queue: MemoryQueue, user: str) -> Lease:
    return await leased(queue, Namespace(tenant=TENANT, user_id=user))


async def test_writes_of_another_tenant_are_not_read(redis: Redis, queue: MemoryQueue) -> None:
    for user in ("ann", "bob"):
        await write(queue, user)
    for number in range(1000):
        await write(queue, f"user {number}", tenant="acme.two")
    await command(redis, "CONFIG", "RESETSTAT")

    users = await queue.events.waiting_users(EVERYTHING)

    calls = {name: stat["calls"] for name, stat in (await command(redis, "INFO", "commandstats")).items()}
    sent = (await command(redis, "INFO", "stats"))["total_net_output_bytes"]
    assert sorted(users) == ["ann", "bob"]
    assert sum(calls.values()) < 100
    assert sent < 4096


async def test_users_are_found_whose_write_runs_or_waits_for_its_next_attempt(queue: MemoryQueue) -> None:
    await write(queue, "runs")
    await begin(queue, "runs")
    await write(queue, "fails: once")
    failed = await begin(queue, "fails: once")
    await queue.lanes.retry(failed, counter="failures", delay_ms=60_000, error="boom")
    await write(queue, "waits / long")

    assert sorted(await queue.events.waiting_users(EVERYTHING)) == ["fails: once", "runs", "waits / long"]


async def test_a_user_whose_writes_are_done_waits_no_more(queue: MemoryQueue) -> None:
    await write(queue, "ann")
    await queue.lanes.finish(await begin(queue, "ann"), status="completed", record="{}", keep_ms=60_000)

    assert await queue.events.waiting_users(EVERYTHING) == []


async def test_more_users_than_one_reply_holds_are_each_found_once(queue: MemoryQueue) -> None:
    names = sorted(f"user {number}" for number in range(1100))
    for name in names:
        await write(queue, name)
        await write(queue, name)

    assert sorted(await queue.events.waiting_users(EVERYTHING)) == names


async def test_an_agent_or_a_run_selects_the_users_who_wrote_in_it(queue: MemoryQueue) -> None:
    await write(queue, "ann", agent_id="home")
    await write(queue, "ann", agent_id="work", run_id="r1")
    await write(queue, "bob", agent_id="home")
    await write(queue, "cem")

    home = await queue.events.waiting_users(Scope(tenant=TENANT, agent_id="home"))
    run = await queue.events.waiting_users(Scope(tenant=TENANT, agent_id="work", run_id="r1"))

    assert (sorted(home), run) == (["ann", "bob"], ["ann"])
