"""One tenant's queued jobs hold a bounded number of bytes, and no job is taken that a nearly full Redis cannot hold."""

from pathlib import Path

import pytest
from redis.asyncio import Redis

from gateway.queue import queued_bytes
from memloop.wire.errors import RateLimited
from memloop.wire.memory import Namespace
from memloop_state.queue.jobs import Lease, Submission
from memloop_state.queue.lanes import LaneQueue
from memloop_state.queue.records import DeadLetters
from memloop_state.room import Room, redis_state
from tests.gateway.api_rig import Api, api
from tests.gateway.file_uploads import objects, sent
from tests.gateway.long_reads import PATH, asked, reader
from tests.gateway.redis_view import command
from tests.gateway.rig import ONE_WORKER, eventually

QUOTA = 20_000
ADD = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "u1"}
NO_ROOM = 1e-9
ONE_JOB = 1e-12
PARTITIONS_AT_MOST = 12


@pytest.fixture
async def queue(redis: Redis) -> LaneQueue:
    return LaneQueue(redis, "memory")


def index(queue: LaneQueue) -> str:
    return queue.keys.partitions[0].key("events", "t", "ben")


async def submit(queue: LaneQueue, job_id: str, *, tenant: str = "t", size: int = 8000) -> None:
    fields = {"status": "queued", "tenant": tenant, "payload": "x" * size}
    assert await queue.submit(Submission(job_id, job_id, 0, index(queue), fields), quota_bytes=QUOTA)


async def leased(queue: LaneQueue) -> Lease:
    lease = await queue.take(ONE_WORKER)
    assert lease is not None
    return lease


async def full(queue: LaneQueue) -> bool:
    """Whether the tenant may not queue another job of 8,000 bytes."""
    try:
        await submit(queue, "one more")
    except RateLimited:
        return True
    await queue.forget("one more", "one more")
    return False


async def test_a_tenant_over_its_quota_is_refused_and_others_are_not(queue: LaneQueue, redis: Redis) -> None:
    for job_id in ("a", "b"):
        await submit(queue, job_id)
    with pytest.raises(RateLimited) as refused:
        await submit(queue, "c")
    await submit(queue, "d", tenant="other")
    found = await queued_bytes(redis)
    assert (refused.value.code, refused.value.retry_after_s) == ("queue_quota_exceeded", 10.0)
    assert (await queue.depth()).jobs == 3
    largest = max(found.values())
    assert 16_000 < largest < QUOTA
    assert 24_000 < found.total() < largest * 2


async def test_a_job_larger_than_the_quota_fits_alone(queue: LaneQueue) -> None:
    await submit(queue, "large", size=2 * QUOTA)
    assert await full(queue)


async def test_small_jobs_count_for_more_than_their_text(queue: LaneQueue) -> None:
    for number in range(18):
        await submit(queue, f"job{number}", size=1)
    with pytest.raises(RateLimited):
        await submit(queue, "one more", size=1)


async def test_a_job_that_ends_gives_its_bytes_back(queue: LaneQueue, redis: Redis) -> None:
    for job_id in ("done", "forgotten", "cancelled"):
        await submit(queue, job_id, size=5000)
    assert await full(queue)
    await queue.finish(await leased(queue), status="completed", record="{}", keep_ms=60_000)
    await queue.forget("forgotten", "forgotten")
    assert await queue.cancel("cancelled", "cancelled", record="{}", keep_ms=60_000) == "cancelled"
    assert (await queued_bytes(redis)).total() == 0
    assert await command(redis, "EXISTS", queue.keys.partitions[0].key("queued-bytes")) == 0


async def test_a_retried_job_keeps_its_bytes(queue: LaneQueue) -> None:
    for job_id in ("a", "b"):
        await submit(queue, job_id)
    await queue.retry(await leased(queue), counter="failures", delay_ms=60_000, error="no")
    await queue.abandon(await leased(queue))
    assert await full(queue)


async def test_a_dead_letter_holds_its_bytes_until_it_expires_and_leaves_no_trace(
    queue: LaneQueue, redis: Redis
) -> None:
    letters, here = DeadLetters(redis), queue.keys.partitions[0]
    for job_id, keep_ms in (("short", 1), ("long", 600_000)):
        await submit(queue, job_id)
        lease = await leased(queue)
        await queue.finish(lease, status="failed", record="{}", keep_ms=keep_ms, dead="why", keeps_work=True)
    await eventually(lambda: _gone(redis, here.job("short")))
    assert await full(queue)
    assert [await letters.sweep(), await letters.sweep()] == [1, 0]
    assert not await full(queue)
    assert [letter["job"] for _, letter in await redis.xrange(here.key("dead"))] == ["long"]  # pyright: ignore
    assert await command(redis, "ZRANGE", index(queue), "0", "-1") == ["long"]


async def test_a_dead_letter_that_is_put_back_releases_its_bytes_once(queue: LaneQueue, redis: Redis) -> None:
    await submit(queue, "a")
    await queue.finish(
        await leased(queue), status="failed", record="{}", keep_ms=600_000, dead="why", keeps_work=True
    )  # fmt: skip
    before = (await queued_bytes(redis)).total()
    assert await queue.requeue("a", "a", record="{}", created_ms=0)
    assert (await queued_bytes(redis)).total() == before > 0
    await queue.finish(await leased(queue), status="completed", record="{}", keep_ms=60_000)
    assert (await queued_bytes(redis)).total() == 0


async def test_the_quota_is_a_share_of_what_the_queue_may_hold(redis: Redis) -> None:
    quota = await Room(redis, share=0.8, tenant_share=0.5).check()
    state = await redis_state(redis)
    parts = len(LaneQueue(redis, "memory").keys.partitions) / state.primaries
    assert quota == pytest.approx(0.4 * state.limit_bytes / parts, abs=2)


async def _gone(redis: Redis, key: str) -> bool:
    return await redis.exists(key) == 0


async def test_a_client_over_the_quota_gets_429_until_a_job_is_done(redis_url: str) -> None:
    user = Namespace(tenant="local", user_id="u1")
    async with api(redis_url, reader, tenant_queue_share=ONE_JOB) as it:
        first, add = [await it.post("/v1/memory/add", ADD) for _ in range(2)]
        reads = [await it.post(PATH, asked(background=True)) for _ in range(PARTITIONS_AT_MOST + 1)]
        counted = [
            await it.gateway.metric('memory_writes_not_admitted_total{reason="quota"}'),
            await it.gateway.metric('jobs_not_admitted_total{queue="memory",reason="quota"}'),
            await it.gateway.metric('jobs_not_admitted_total{queue="reads",reason="quota"}'),
        ]
        await it.rig.writes.events.forget(user)
        for read in await _all_reads(it):
            await it.call("DELETE", f"{PATH}/{read}")
        later = await it.post("/v1/memory/add", ADD)
    refused = [answer for answer in (add, *reads) if answer.status != 202]
    assert (first.status, later.status, len(refused) > 1) == (202, 202, True)
    assert {(answer.status, answer.error["code"]) for answer in refused} == {(429, "queue_quota_exceeded")}
    assert {answer.headers["Retry-After"] for answer in refused} == {"10"}
    assert counted == [1, 1, len(refused) - 1]


async def _all_reads(it: Api) -> list[str]:
    return [read["id"] for read in (await it.get(PATH)).json["data"]]


async def test_a_chat_over_the_quota_is_answered_without_its_write(redis_url: str) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi."}], "memory": {"user_id": "u1"}}
    async with api(redis_url, reader, tenant_queue_share=ONE_JOB) as it:
        first, second = [await it.post("/v1/chat/completions", asked) for _ in range(2)]
        turns_lost = await it.gateway.metric("memory_turns_not_queued_total")
    assert (first.status, first.json["memory"]["error"]) == (200, None)
    told = "The queue holds as many of your memory writes as it may; this turn will not be remembered."
    assert (second.status, second.json["memory"]["error"]) == (200, told)
    assert second.json["choices"] == first.json["choices"]
    assert turns_lost == 1


async def test_reads_and_files_are_refused_while_redis_is_nearly_full(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, storage_url=tmp_path.as_uri(), redis_full_share=NO_ROOM) as it:
        answers = {
            "memory": await it.post("/v1/memory/add", ADD),
            "reads": await it.post(PATH, asked(background=True)),
            "files": await sent(it.gateway, b"Some text."),
        }
        counted = {
            queue: await it.gateway.metric(f'jobs_not_admitted_total{{queue="{queue}",reason="unavailable"}}')
            for queue in answers
        }
        foreground = await it.post(PATH, asked())
    for refused in answers.values():
        assert (refused.status, refused.error["code"], refused.headers["Retry-After"]) == (503, "unavailable", "5")
    assert counted == {"memory": 1, "reads": 1, "files": 1}
    assert foreground.status == 200


async def test_a_refused_upload_leaves_no_bytes_in_the_storage(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, storage_url=tmp_path.as_uri(), tenant_queue_share=ONE_JOB) as it:
        taken = await sent(it.gateway, b"Some text.")
        before = objects(tmp_path)
        refused = await sent(it.gateway, b"Other text.")
        await it.rig.work.reading.files.stored().blobs.sweep()
        left = objects(tmp_path)
    assert (taken.status, refused.status, refused.error["code"]) == (200, 429, "queue_quota_exceeded")
    assert (left, len(left) > 0) == (before, True)
