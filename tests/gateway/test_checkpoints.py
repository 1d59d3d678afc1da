"""A job's journal: first values stay, replies come back, nothing outlives an erasure."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from gateway.queue import JournalCheckpoints
from memloop.ports import Completion
from memloop.wire.chat import FunctionCall, ToolCall
from memloop.wire.memory import Usage
from memloop_state.queue.jobs import JobGone
from memloop_state.queue.records import Journal
from memloop_state.steps import Partitions
from tests.gateway.redis_view import command, connected, keys


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with connected(redis_url) as client:
        await command(client, "HSET", Partitions(client).job("a"), "status", "in_progress")
        yield client


async def test_the_first_value_of_a_field_stays(redis: Redis) -> None:
    journal = Journal(redis, "a")
    assert await journal.read("decision:0") is None
    assert await journal.keep("decision:0", "first") == "first"
    assert await journal.keep("decision:0", "second") == "first"
    assert await journal.all() == {"decision:0": "first"}


async def test_a_job_that_was_erased_keeps_nothing(redis: Redis) -> None:
    journal = Journal(redis, "a")
    await redis.delete(Partitions(redis).job("a"))
    with pytest.raises(JobGone):
        await journal.keep("start", "text of a user")
    assert await keys(redis) == []


async def test_a_reply_comes_back_as_it_was(redis: Redis) -> None:
    reply = Completion(
        content="half \ud83d",
        finish_reason="tool_calls",
        reasoning="because",
        tool_calls=(ToolCall(id="c1", function=FunctionCall(name="ignore_memory", arguments='{"reason": "x"}')),),
        usage=Usage(input_tokens=3, output_tokens=2, llm_calls=1),
    )
    checkpoints = JournalCheckpoints(Journal(redis, "a"), scope="0:0")
    await checkpoints.save("key", reply)
    assert await checkpoints.load("key") == reply


async def test_scopes_of_one_job_do_not_mix(redis: Redis) -> None:
    await JournalCheckpoints(Journal(redis, "a"), scope="0:0").save("key", Completion("first"))
    assert await JournalCheckpoints(Journal(redis, "a"), scope="1:0").load("key") is None
