"""Background reads of a higher tier are taken first, and none starves; how long finished reads and events stay."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from gateway.long_read.records import TIERS
from memloop_state.queue.jobs import Submission
from memloop_state.queue.lanes import LaneQueue
from memloop_state.steps import Partitions
from tests.fakes.job_engine import Body, Reply, add_memory
from tests.gateway.api_rig import Api, api
from tests.gateway.long_reads import PATH, asked, ended, queued, reader
from tests.gateway.redis_view import command, connected, keys
from tests.gateway.rig import ONE_WORKER, eventually

TIERED = {"priority": "priority:", "default": "", "flex": "flex:"}


@asynccontextmanager
async def tiered(redis_url: str) -> AsyncGenerator[LaneQueue]:
    async with connected(redis_url) as redis:
        queue = LaneQueue(redis, "reads", tiers=TIERS)
        yield queue


async def _submit(queue: LaneQueue, tier: str, number: int) -> None:
    job_id = f"lr_00{tier}{number}"
    fields = {"status": "queued", "payload": "{}"}
    await queue.submit(
        Submission(job_id, TIERED[tier] + job_id, number, queue.keys.of_id(job_id).key("reads", "t"), fields)
    )


async def _taken(queue: LaneQueue, times: int) -> list[str]:
    """The tiers of the next lanes."""
    leases = [await queue.take(ONE_WORKER) for _ in range(times)]
    return [lease.lane.rpartition("lr_00")[2].rstrip("0123456789") for lease in leases if lease is not None]


async def test_of_reads_that_wait_the_higher_tier_is_taken_first(redis_url: str) -> None:
    async with tiered(redis_url) as queue:
        for tier in ("flex", "default", "priority"):
            await _submit(queue, tier, 1)
        assert await _taken(queue, 4) == ["priority", "default", "flex"]


async def test_lower_tiers_get_a_bounded_share_while_higher_ones_wait(redis_url: str) -> None:
    async with tiered(redis_url) as queue:
        for number in range(40):
            for tier in TIERS:
                await _submit(queue, tier, number)
        taken = await _taken(queue, 32)
    assert {tier: taken.count(tier) for tier in TIERS} == {"priority": 24, "default": 6, "flex": 2}
    assert taken[:4] == ["priority", "priority", "priority", "default"]
    assert taken[15] == "flex"


async def test_of_reads_that_come_at_once_each_waiting_worker_gets_one(redis_url: str) -> None:
    async def woken(name: str) -> str:
        while (lease := await queue.take(replace(ONE_WORKER, name=name))) is None:
            await queue.wait(block_ms=1000)
        return lease.job_id

    async with tiered(redis_url) as queue, connected(redis_url) as other:
        workers = [asyncio.create_task(woken(name)) for name in ("one", "two")]
        await eventually(lambda: _blocked(other, 2))
        for tier in ("flex", "default"):
            await _submit(queue, tier, 1)
        async with asyncio.timeout(50):
            taken = await asyncio.gather(*workers)
    assert sorted(taken) == ["lr_00default1", "lr_00flex1"]


async def _blocked(redis: Redis, clients: int) -> bool:
    return (await command(redis, "INFO", "clients"))["blocked_clients"] == clients


@pytest.mark.parametrize("tier", TIERS)
async def test_a_lane_whose_worker_died_goes_to_another_in_every_tier(redis_url: str, tier: str) -> None:
    async with tiered(redis_url) as queue:
        await _submit(queue, tier, 1)
        assert await queue.take(replace(ONE_WORKER, idle_ms=0)) is not None
        claimed = await queue.claim(replace(ONE_WORKER, name="two"))
        assert claimed is not None
        assert claimed.starts == 2


@pytest.mark.parametrize("tier", ["auto", *TIERS])
async def test_a_read_of_every_tier_is_done_announced_and_deleted_without_a_trace(redis_url: str, tier: str) -> None:
    async with api(redis_url, reader) as it:
        waiting = await queued(it, service_tier=tier)
        assert (await it.post(f"{PATH}/{waiting}/cancel", {})).json["status"] == "cancelled"
        read_id = await queued(it, service_tier=tier)
        async with it.rig.working():
            read = await ended(it, read_id)
        assert (read["status"], read["service_tier"]) == ("completed", "default" if tier == "auto" else tier)
        for each in (waiting, read_id):
            await it.call("DELETE", f"{PATH}/{each}")
            assert await keys(it.rig.work.state, f"*{each}*") == []


async def test_an_unknown_tier_is_refused(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        assert (await it.post(PATH, asked(service_tier="gold"))).status == 422


def _writer_and_reader(body: Body) -> Reply:
    return add_memory("Alice likes tea.") if body.get("tools") else reader(body)


async def _left_s(it: Api, key: str) -> int:
    return await command(it.rig.work.state, "TTL", key)


async def test_reads_and_events_are_kept_as_long_as_configured(redis_url: str) -> None:
    async with api(redis_url, _writer_and_reader, long_read_keep_s=7200, memory_event_keep_s=3600) as it:
        foreground = (await it.post(PATH, asked())).json["id"]
        cancelled = await queued(it)
        await it.post(f"{PATH}/{cancelled}/cancel", {})
        async with it.rig.working():
            finished = await queued(it)
            await ended(it, finished)
            event_id = await it.rig.write("I like tea.")
            await it.rig.event(event_id)
        places = Partitions(it.rig.work.state)
        for read_id in (foreground, cancelled, finished):
            at = places.of_id(read_id)
            assert 7100 < await _left_s(it, at.job(read_id)) <= 7200
            assert 7100 < await _left_s(it, at.events(read_id)) <= 7200
        assert 3500 < await _left_s(it, places.job(event_id)) <= 3600
