"""Memory writes from the queue to the event, with a worker in the process."""

import asyncio
import re

import pytest

from gateway.memory import event_id
from memloop.wire.memory import Namespace
from tests.fakes.job_engine import Body, Reply, add_memory, cut, last_text, tool_call
from tests.fakes.job_store import Hold
from tests.fakes.processes import PATIENCE_S
from tests.gateway.redis_view import stream_length
from tests.gateway.rig import ALICE, Rig, contents, enqueued, eventually, rig, script, turns

BUFFER = tool_call("buffer_memory", reason="half a thought")
IGNORE = tool_call("ignore_memory", reason="small talk")
SEARCH = tool_call("search_memory", query="tea")

ONE = event_id(ALICE.lane(), "0" * 32)


async def test_an_add_decision_stores_the_memory_with_its_sources_and_the_raw_turns(redis_url: str) -> None:
    async with rig(redis_url, script(add_memory("Alice likes tea."))) as it, it.working():
        event = await it.event(await it.write("I like tea."))
    assert event.status == "completed"
    assert event.attempts == 1
    assert [written.item.memory for written in event.memories] == ["Alice likes tea."]
    assert contents(event.memories[0].item.sources) == ["I like tea."]
    assert it.store.texts("RawTurn") == ["I like tea."]


async def test_every_turn_of_the_model_is_on_the_event(redis_url: str) -> None:
    async with rig(redis_url, script(SEARCH, add_memory("Alice likes tea."))) as it, it.working():
        event = await it.event(await it.write("I like tea."))
    assert [(record.action, record.query) for record in event.decisions] == [("search", "tea"), ("add", None)]
    assert event.usage.llm_calls == 2


async def test_buffered_turns_are_shown_again_with_the_next_write_and_then_cleared(redis_url: str) -> None:
    async with rig(redis_url, script(BUFFER, add_memory("Alice moved to Rome."))) as it, it.working():
        first = await it.event(await it.write("I moved"))
        assert it.store.buffered() == ["I moved"]
        second = await it.event(await it.write("to Rome"))
    assert [record.action for record in first.decisions] == ["buffer"]
    assert contents(second.memories[0].item.sources) == ["I moved", "to Rome"]
    assert it.store.buffered() == []


async def test_a_profile_without_tools_writes_memories_from_one_reply(redis_url: str) -> None:
    reply = '{"memory list": [{"key": "tea", "memory_type": "UserMemory", "value": "Alice likes tea.", "tags": []}]}'
    async with rig(redis_url, script(reply), profile="extractor") as it, it.working():
        event = await it.event(await it.write("I like tea."))
    assert [record.action for record in event.decisions] == ["add"]
    assert (it.store.texts(), it.store.texts("RawTurn")) == (["Alice likes tea."], ["I like tea."])


async def test_ignored_turns_leave_only_raw_turns(redis_url: str) -> None:
    async with rig(redis_url, script(IGNORE)) as it, it.working():
        event = await it.event(await it.write("hi"))
    assert (event.status, event.memories, it.store.texts(), it.store.texts("RawTurn")) == ("completed", (), [], ["hi"])


async def test_a_flush_decides_over_the_buffered_turns_alone(redis_url: str) -> None:
    async with rig(redis_url, script(BUFFER, add_memory("Alice moved."))) as it, it.working():
        await it.event(await it.write("I moved"))
        event = await it.event(await enqueued(it.writes))
    assert contents(event.memories[0].item.sources) == ["I moved"]
    assert it.store.buffered() == []


@pytest.mark.parametrize("limit", [{"buffer_flush_turns": 3}, {"buffer_flush_tokens": 70}], ids=["turns", "tokens"])
async def test_a_buffer_that_is_full_is_settled(redis_url: str, limit: dict[str, int]) -> None:
    replies = (BUFFER, BUFFER, BUFFER, add_memory("Alice moved to Rome."))
    async with rig(redis_url, script(*replies), **limit) as it, it.working():
        for text in ("I moved,", "all of us,"):
            await it.event(await it.write(text))
        assert it.store.buffered() == ["I moved,", "all of us,"]
        event = await it.event(await it.write("to Rome."))
    assert [record.action for record in event.decisions] == ["buffer", "add"]
    assert contents(event.memories[0].item.sources) == ["I moved,", "all of us,", "to Rome."]
    assert it.store.buffered() == []


@pytest.mark.parametrize(("profile", "wait"), [("default", BUFFER), ("small", "wait")])
async def test_a_flush_keeps_the_turns_word_for_word_if_the_model_would_still_wait(
    redis_url: str, profile: str, wait: Reply
) -> None:
    async with rig(redis_url, script(wait), profile=profile) as it, it.working():
        await it.event(await it.write("I moved"))
        event = await it.event(await enqueued(it.writes))
    assert (event.status, it.store.buffered(), it.store.texts()) == ("kept_verbatim", [], ["I moved"])
    assert "would still wait" in str(event.error)
    assert [record.action for record in event.decisions] == ["buffer", "buffer"]


@pytest.mark.parametrize(("profile", "wait"), [("default", BUFFER), ("small", "wait")])
async def test_a_client_that_waits_for_the_decision_finds_what_it_told(
    redis_url: str, profile: str, wait: Reply
) -> None:
    async with rig(redis_url, script(wait), profile=profile) as it, it.working():
        await enqueued(it.writes, turns("I moved"), event_id=ONE, settles=True)
        event = await it.event(ONE)
    assert (event.status, it.store.buffered(), it.store.texts()) == ("kept_verbatim", [], ["I moved"])


async def test_a_write_that_settles_takes_along_what_waited(redis_url: str) -> None:
    async with rig(redis_url, script(BUFFER, add_memory("Alice moved to Rome."))) as it, it.working():
        await it.event(await it.write("I moved"))
        await enqueued(it.writes, turns("to Rome."), event_id=ONE, settles=True)
        event = await it.event(ONE)
    assert contents(event.memories[0].item.sources) == ["I moved", "to Rome."]


async def test_an_idle_buffer_is_settled_once_by_any_of_the_workers(redis_url: str) -> None:
    replies = script(BUFFER, add_memory("Alice moved."))
    async with rig(redis_url, replies, buffer_flush_age_s=0.2) as it, it.working(), it.working():
        await it.event(await it.write("I moved"))
        await eventually(lambda: it.store.buffered() == [])
    assert it.store.texts() == ["Alice moved."]
    assert len(it.engine.calls) == 2


async def test_a_flush_of_nothing_calls_no_model(redis_url: str) -> None:
    async with rig(redis_url, script(500)) as it, it.working():
        event = await it.event(await enqueued(it.writes))
    assert (event.status, it.engine.calls) == ("completed", [])


async def test_a_repeated_event_id_is_one_write(redis_url: str) -> None:
    async with rig(redis_url, script(add_memory("Alice likes tea."))) as it:
        for _ in range(2):
            await enqueued(it.writes, turns("I like tea."), event_id=ONE)
        async with it.working():
            await it.event(ONE)
            await eventually(lambda: _idle(it))
    assert it.store.writes == ["I like tea.", "Alice likes tea."]


async def test_a_write_whose_memories_the_store_refuses_becomes_a_dead_letter(redis_url: str) -> None:
    async with rig(redis_url, script(add_memory("Alice likes tea."))) as it, it.working():
        it.store.refuse_memories = 422
        event = await it.event(await it.write("I like tea."))
        dead_letters = await stream_length(it.work.state, "*:dead")
    assert (event.status, event.attempts, event.error, dead_letters) == ("failed", 3, "scripted", 1)
    assert it.store.texts("RawTurn") == ["I like tea."]
    assert len(it.engine.calls) == 1


async def test_after_a_write_that_nobody_could_decide_its_lane_goes_on(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        return 400 if "poison" in str(body["messages"]) else add_memory("fine")

    async with rig(redis_url, answer) as it, it.working():
        bad = await it.write("poison")
        good = await it.write("good")
        assert (await it.event(good)).status == "completed"
        assert (await it.event(bad)).status == "kept_verbatim"


@pytest.mark.parametrize("status", [500, 503, 429, 401], ids=str)
async def test_an_engine_outage_costs_no_attempt(redis_url: str, status: int) -> None:
    replies = script(*[status] * 5, add_memory("Alice likes tea."))
    async with rig(redis_url, replies) as it, it.working():
        event = await it.event(await it.write("I like tea."))
    assert (event.status, event.attempts) == ("completed", 1)


async def test_a_store_outage_costs_no_attempt_and_replays_the_paid_replies(redis_url: str) -> None:
    async with rig(redis_url, script(add_memory("Alice likes tea."))) as it, it.working():
        it.store.hold = Hold(lambda method, path, body: "UserMemory" in body, "before")
        event_id = await it.write("I like tea.")
        await it.store.hold.reached.wait()
        it.store.down = True
        it.store.hold.let_go.set()
        it.store.refuse_adds = 503
        await asyncio.sleep(0.2)
        it.store.down, it.store.refuse_adds = False, None
        event = await it.event(event_id)
    assert (event.status, event.attempts, len(it.engine.calls)) == ("completed", 1, 1)
    assert it.store.texts() == ["Alice likes tea."]


async def test_writes_of_one_user_are_applied_in_their_queue_order(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        return add_memory(last_text(body).split("note ")[-1].split()[0])

    async with rig(redis_url, answer, worker_concurrency=4) as it:
        ids = [await it.write(f"note {number:02}") for number in range(12)]
        async with it.working(), it.working():
            for event_id in ids:
                await it.event(event_id)
    assert it.store.texts() == [f"{number:02}" for number in range(12)]


async def test_writes_of_different_users_run_side_by_side(redis_url: str) -> None:
    async with rig(redis_url, script(IGNORE), hang_at=1) as it, it.working():
        slow = await it.write("one")
        await it.engine.hanging.wait()
        quick = await it.write("two", namespace=Namespace(tenant="local", user_id="bob"))
        assert (await it.event(quick)).status == "completed"
        assert (await it.writes.events.get("local", slow)).status == "in_progress"
        it.engine.let_go.set()
        assert (await it.event(slow)).status == "completed"


async def test_turns_over_the_window_are_decided_in_rounds_and_none_is_lost(redis_url: str) -> None:
    texts = [f"fact {number}: " + "word " * 400 for number in range(12)]
    async with rig(redis_url, script(IGNORE)) as it, it.working():
        event = await it.event(await it.write(*texts))
    shown = "".join(last_text(call) for call in it.engine.calls)
    assert len(it.engine.calls) > 1
    assert all(f"fact {number}:" in shown for number in range(12))
    assert len(event.decisions) == len(it.engine.calls)


async def test_a_decision_takes_as_many_turns_as_the_profile_was_trained_on(redis_url: str) -> None:
    async with rig(redis_url, script(IGNORE)) as it, it.working():
        event = await it.event(await it.write(*(f"fact {number}" for number in range(10))))
    assert [_turns_shown(call) for call in it.engine.calls] == [4, 4, 2]
    assert len(event.decisions) == 3


async def test_a_reply_cut_at_its_limit_halves_the_turns(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        return cut("<tool_call>{") if _turns_shown(body) > 1 else add_memory(f"Alice {len(it.engine.calls)}")

    async with rig(redis_url, answer) as it, it.working():
        event = await it.event(await it.write("one", "two", "three"))
    assert (event.status, event.attempts) == ("completed", 1)
    assert [_turns_shown(call) for call in it.engine.calls] == [3, 3, 1, 2, 2, 1, 1]
    assert [contents(written.item.sources) for written in event.memories] == [["one"], ["two"], ["three"]]
    assert [record.action for record in event.decisions] == [*("invalid",) * 2, "add", *("invalid",) * 2, "add", "add"]


async def test_a_write_that_was_halved_goes_on_where_it_was(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        if _turns_shown(body) > 1:
            return cut("<tool_call>{")
        return 500 if len(it.engine.calls) == 4 else add_memory("Alice likes tea.")

    async with rig(redis_url, answer) as it, it.working():
        event = await it.event(await it.write("one", "two"))
    assert (event.status, event.attempts) == ("completed", 1)
    assert [_turns_shown(call) for call in it.engine.calls] == [2, 2, 1, 1, 1]


def _turns_shown(call: Body) -> int:
    return str(call["messages"][1]["content"]).count("[user] (")


async def test_a_graceful_stop_gives_the_job_back_uncounted(redis_url: str) -> None:
    async with rig(redis_url, script(add_memory("Alice likes tea.")), hang_at=1, stop_wait_s=0.05) as it:
        async with it.working():
            event_id = await it.write("I like tea.")
            await it.engine.hanging.wait()
        assert (await it.writes.events.get("local", event_id)).status == "queued"
        async with it.working():
            event = await it.event(event_id)
    assert (event.status, event.attempts) == ("completed", 1)


async def test_a_worker_that_is_stopped_while_it_starts_stops(redis_url: str) -> None:
    async with rig(redis_url, script(500)) as it:
        for passed_s in (0.0, 0.0005, 0.001, 0.002):
            async with asyncio.timeout(PATIENCE_S), it.working():
                await asyncio.sleep(passed_s)


async def _idle(it: Rig) -> bool:
    return (await it.writes.lanes.depth()).jobs == 0


async def test_the_writer_reads_when_a_message_without_a_time_of_its_own_was_said(redis_url: str) -> None:
    async with rig(redis_url, script(IGNORE)) as it, it.working():
        event = await it.event(await it.write("My dog turned five yesterday."))
    said = f"[user] ({event.created_at:%A %Y-%m-%d %H:%M}): My dog turned five yesterday."
    assert str(it.engine.calls[0]["messages"][1]["content"]).endswith(said)


def about(*facts: tuple[str, str]) -> Body:
    drafts: list[Body] = [{"key": key, "memory_type": "UserMemory", "value": value, "tags": []} for key, value in facts]
    return tool_call("add_memory", memory_list=drafts, summary="facts")


async def test_two_facts_under_one_key_of_a_reply_are_two_memories(redis_url: str) -> None:
    facts = ("allergy", "Alice is allergic to peanuts."), ("allergy", "Alice is allergic to penicillin.")
    async with rig(redis_url, script(about(*facts))) as it, it.working():
        event = await it.event(await it.write("I'm allergic to peanuts and to penicillin."))
    assert [written.item.memory for written in event.memories] == [fact for _, fact in facts]
    assert len({written.item.key for written in event.memories}) == 2


async def test_a_writer_that_waits_alone_and_is_cut_together_ends(redis_url: str) -> None:
    def reply(body: Body) -> Reply:
        many = all(word in str(body["messages"]) for word in ("I like tea", "coffee too"))
        return cut('<tool_call>{"name": "add_memory", "arguments": {"memory_list": [{"k') if many else BUFFER

    async with rig(redis_url, reply) as it, it.working():
        event = await it.event(await it.write("I like tea and", "coffee too."))
    assert event.usage.llm_calls < 12
    assert event.status == "kept_verbatim"
    assert it.store.texts("KeptTurn") == ["I like tea and", "coffee too."]


async def test_a_long_turn_is_not_cut_in_a_number(redis_url: str) -> None:
    shown = list[str]()

    def reply(body: Body) -> Reply:
        shown.append(last_text(body))
        return IGNORE

    text = " ".join(f"My account number is {48210077 + number}." for number in range(900))
    async with rig(redis_url, reply) as it, it.working():
        await it.event(await it.write(text))
    seen = re.findall(r"number is (\d+)", " ".join(shown))
    assert len(shown) > 2
    assert seen == [str(48210077 + number) for number in range(900)]
