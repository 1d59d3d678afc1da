"""Writes that were given up, and what an operator can do about them."""

import pytest

from gateway.memory.dead_letters import DeadLetters, run
from memloop_state.steps import Partitions
from tests.fakes.job_engine import add_memory, tool_call
from tests.gateway.redis_view import stream_length
from tests.gateway.rig import ALICE, Rig, rig, script

LIKES = add_memory("Alice likes tea.")
BUFFER = tool_call("buffer_memory", reason="half a thought")


async def given_up(it: Rig) -> str:
    """A write whose memories the store refuses, in every attempt; then it takes them."""
    it.store.refuse_memories = 422
    event_id = await it.write("I like tea.")
    assert (await it.event(event_id)).status == "failed"
    it.store.refuse_memories = None
    return event_id


async def test_a_requeued_dead_letter_goes_on_with_its_decision_and_writes_its_turns_once(redis_url: str) -> None:
    async with rig(redis_url, script(LIKES)) as it, it.working():
        letters = DeadLetters(it.work.state)
        event_id = await given_up(it)
        assert [letter.job_id async for letter in letters.all()] == [event_id]
        assert await letters.requeue(event_id)
        event = await it.event(event_id)
        assert [letter async for letter in letters.all()] == []
    assert (event.status, event.attempts) == ("completed", 1)
    assert it.store.writes == ["I like tea.", "Alice likes tea."]


async def test_a_dead_letter_that_fails_again_is_one_again(redis_url: str) -> None:
    async with rig(redis_url, script(LIKES)) as it, it.working():
        letters = DeadLetters(it.work.state)
        event_id = await given_up(it)
        it.store.refuse_memories = 422
        assert await letters.requeue(event_id)
        assert (await it.event(event_id)).attempts == 3
        assert [letter.job_id async for letter in letters.all()] == [event_id]


async def test_a_write_that_is_put_back_waits_for_the_writes_that_came_after_it(redis_url: str) -> None:
    replies = script(LIKES, add_memory("Alice has a cat."))
    async with rig(redis_url, replies) as it:
        async with it.working():
            event_id = await given_up(it)
        later = await it.write("I have a cat.")
        assert await DeadLetters(it.work.state).requeue(event_id)
        async with it.working():
            for one in (later, event_id):
                assert (await it.event(one)).status == "completed"
    assert it.store.texts() == ["Alice has a cat.", "Alice likes tea."]


async def test_a_dropped_dead_letter_leaves_nothing_but_the_raw_turns(redis_url: str) -> None:
    async with rig(redis_url, script(LIKES)) as it, it.working():
        event_id = await given_up(it)
        assert await DeadLetters(it.work.state).drop(event_id)
        at = Partitions(it.work.state).of_id(event_id)
        assert await it.work.state.exists(at.job(event_id), at.key("journal", event_id)) == 0
        assert await stream_length(it.work.state, "*:dead") == 0
    assert it.store.texts("RawTurn") == ["I like tea."]


async def test_a_dead_letter_ends_with_its_time_and_one_that_is_put_back_has_time(redis_url: str) -> None:
    async with rig(redis_url, script(LIKES), dead_letter_keep_s=60) as it:
        at, letters = Partitions(it.work.state), DeadLetters(it.work.state)
        async with it.working():
            event_id = await given_up(it)
        parts = [at.job(event_id), at.of_id(event_id).key("journal", event_id)]
        assert [50_000 < await it.work.state.pttl(part) <= 60_000 for part in parts] == [True, True]
        assert await letters.requeue(event_id)
        assert [await it.work.state.pttl(part) for part in parts] == [-1, -1]


async def test_a_dead_letter_whose_write_is_gone_can_be_dropped(redis_url: str) -> None:
    async with rig(redis_url, script(LIKES)) as it, it.working():
        letters, event_id = DeadLetters(it.work.state), await given_up(it)
        await it.work.state.delete(Partitions(it.work.state).job(event_id))
        assert not await letters.requeue(event_id)
        assert await letters.drop(event_id)
        assert [letter async for letter in letters.all()] == []


@pytest.mark.parametrize("command", ["requeue", "drop"])
async def test_a_write_that_is_well_is_not_touched(redis_url: str, command: str) -> None:
    async with rig(redis_url, script(BUFFER)) as it, it.working():
        event_id = await it.write("I moved")
        event = await it.event(event_id)
        assert await run(command, [event_id, "evt_unknown"], DeadLetters(it.work.state)) == 1
        assert await it.writes.events.get(ALICE.tenant, event_id) == event


async def test_the_list_names_each_with_its_error(redis_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with rig(redis_url, script(LIKES)) as it, it.working():
        event_id = await given_up(it)
        assert await run("list", (), DeadLetters(it.work.state)) == 0
    assert capsys.readouterr().out.startswith(f"{event_id}\tscripted")
