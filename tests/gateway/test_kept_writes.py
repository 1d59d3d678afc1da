"""What a process keeps of waiting writes changes no answer, and is bounded."""

from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from redis.asyncio import Redis

from gateway.memory.pending import MOST_KEPT, MOST_KEPT_CHARS, KeptWrites, PendingWrites, QueuedWrite
from memloop.wire.memory import Namespace
from tests.fakes.processes import PATIENCE_S
from tests.gateway.rig import ALICE, enqueued, leased, memory_queue, turns

SHORT, LONG = (QueuedWrite("queued", None, None, (), is_short=is_short) for is_short in (True, False))


async def sent_bytes(redis: Redis) -> int:
    """What Redis has sent so far."""
    stats = cast("dict[str, int]", await cast(Any, redis).info("stats"))
    return stats["total_net_output_bytes"]


async def test_a_reader_that_keeps_answers_as_a_new_one(redis: Redis) -> None:
    queue = memory_queue(redis)
    keeping = PendingWrites(redis, wait_s=PATIENCE_S)
    spaces = (ALICE, Namespace(tenant="local", user_id="alice", agent_id="a"))

    async def answers_as_a_new_one() -> list[str]:
        for space in spaces:
            new, kept = await PendingWrites(redis, wait_s=PATIENCE_S).of_user(space), await keeping.of_user(space)
            assert (kept.pending, kept.failed, kept.complete) == (new.pending, new.failed, True)
        return [turn.status for turn in (await keeping.of_user(ALICE)).pending]

    assert await answers_as_a_new_one() == []
    await enqueued(queue, turns("I live in Oslo.", "Since May."))
    assert await answers_as_a_new_one() == ["queued", "queued"]
    await enqueued(queue, turns("x" * (MOST_KEPT_CHARS + 1)), namespace=spaces[1])
    await enqueued(queue, turns("I have a dog."), namespace=spaces[1])
    assert await answers_as_a_new_one() == ["queued"] * 4
    lease = await leased(queue)
    assert await answers_as_a_new_one() == ["queued", "queued", "in_progress", "in_progress"]
    assert await queue.lanes.finish(lease, status="completed", record="{}", keep_ms=60_000)
    assert await answers_as_a_new_one() == ["queued", "queued"]
    for left in (["queued"], []):
        assert await queue.lanes.finish(await leased(queue), status="completed", record="{}", keep_ms=60_000)
        assert await answers_as_a_new_one() == left


@pytest.mark.parametrize(("chars", "is_sent_again"), [(3_500, False), (MOST_KEPT_CHARS + 1, True)])
async def test_redis_sends_a_short_text_once_per_process_a_long_one_each_time(
    redis: Redis, chars: int, is_sent_again: bool
) -> None:
    queue = memory_queue(redis)
    for number in range(20):
        await enqueued(queue, turns(f"{number} ".ljust(chars, "x")))
    reader = PendingWrites(redis, wait_s=PATIENCE_S)

    async def sent() -> int:
        before = await sent_bytes(redis)
        assert len((await reader.of_user(ALICE)).pending) == 20
        return await sent_bytes(redis) - before

    assert await sent() > 20 * chars
    again = await sent()
    assert again > 20 * chars if is_sent_again else again < 6 * chars


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 50), st.integers(0, 3)), max_size=120))
@example([(lane, 50, 1) for lane in (*range(41), 30)])
def test_no_more_than_so_many_writes_are_kept_those_of_the_last_lanes(
    given_writes: list[tuple[int, int, int]],
) -> None:
    kept, expected = KeptWrites(), dict[str, dict[str, QueuedWrite]]()
    for lane, short, long in given_writes:
        name, writes = f"lane-{lane}", {f"short-{number}": SHORT for number in range(short)}
        kept.keep(name, {**writes, **{f"long-{number}": LONG for number in range(long)}})
        expected.pop(name, None)
        expected[name] = writes
        while sum(map(len, expected.values())) > MOST_KEPT:
            del expected[next(iter(expected))]
    for name in map("lane-{}".format, range(41)):
        assert kept.of(name) == expected.get(name, {})
