"""Told is kept: turns on which the memory writer gives no usable decision become memories, word for word."""

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import pytest

from gateway.memory.jobs import MemoryJob
from gateway.memory.kept_turns import KEPT
from gateway.memory.policed_store import redacted_add
from gateway.policy.redaction.finding import Redaction, find_by_rules
from memloop.wire.memory import MemoryDraft, Namespace, Source, StoreAdd
from memloop.wire.policy import SECRETS
from tests.fakes.job_engine import Body, Reply, add_memory, cut, last_text, tool_call
from tests.gateway.api_rig import api
from tests.gateway.rig import ALICE, Rig, rig, script

TEA: Final = "I like green tea."
BAD: Final[dict[str, Callable[[], Reply]]] = {
    "prose": lambda: "What a lovely thing to say!",
    "prose with braces": lambda: "Based on the talk {about a dog}, here it is: {nothing}",
    "an empty reply": lambda: "",
    "an endless reply": lambda: cut("I think that I think that " * 200),
    "half a tool call as text": lambda: cut('<tool_call>{"name": "add_memory", "arguments": {"memory_list": ['),
    "a tool call as text without its arguments": lambda: '<tool_call>{"name": "add_memory"}</tool_call>',
    "a tool that does not exist": lambda: tool_call("save_to_brain", text="tea"),
    "a tool without what it needs": lambda: tool_call("add_memory", summary="kept"),
    "an empty list of memories": lambda: tool_call("add_memory", memory_list=[], summary="kept"),
    "only a thought": lambda: "<think>The user likes tea.</think>",
    "a JSON value of another kind": lambda: json.dumps(["tea", 3, None]),
    "another object": lambda: '{"ok": true}',
    "an entry that is cut in its middle": lambda: cut('{"memory_list": [{"key": "dog", "value": "Alice has a d'),
}


def at_random(seed: int) -> Callable[[Body], Reply]:
    """A writer that answers in any of these ways."""
    dice, ways = random.Random(seed), list(BAD.values())
    return lambda _: dice.choice(ways)()


async def kept(it: Rig, *texts: str) -> str:
    """A write that was kept verbatim."""
    event_id = await it.write(*(texts or (TEA,)))
    assert (await it.event(event_id)).status == "kept_verbatim"
    return event_id


@pytest.mark.parametrize("way", BAD)
async def test_what_was_told_is_a_memory_whatever_the_writer_answers(redis_url: str, way: str) -> None:
    async with rig(redis_url, lambda _: BAD[way]()) as it, it.working():
        event = await it.event(await it.write(TEA))
        calls = len(it.engine.calls)
    assert (event.status, event.attempts, calls) == ("kept_verbatim", 1, 2)
    [written] = event.memories
    assert (written.item.memory, written.item.memory_type) == (TEA, KEPT)
    assert [source.content for source in written.item.sources] == [TEA]
    assert it.store.texts() == [TEA]
    assert event.error is not None


@pytest.mark.parametrize("profile", ["extractor", "small"])
@pytest.mark.parametrize("way", ["an empty reply", "an endless reply", "only a thought"])
async def test_a_writer_without_tools_loses_nothing_either(redis_url: str, profile: str, way: str) -> None:
    async with rig(redis_url, lambda _: BAD[way](), profile=profile) as it, it.working():
        event = await it.event(await it.write(TEA))
        calls = len(it.engine.calls)
    assert (event.status, calls, it.store.texts()) == ("kept_verbatim", 2, [TEA])


async def test_the_reply_is_shown_with_the_decision(redis_url: str) -> None:
    async with rig(redis_url, script("no", "What a lovely day. " * 500)) as it, it.working():
        event = await it.event(await kept(it))
    assert [record.reply[:19] for record in event.decisions] == ["", "What a lovely day. "]
    assert len(event.decisions[-1].reply) == 2000


async def test_one_bad_reply_of_two_costs_nothing(redis_url: str) -> None:
    async with rig(redis_url, script("no", add_memory("Alice likes tea."))) as it, it.working():
        event = await it.event(await it.write(TEA))
    assert (event.status, it.store.texts()) == ("completed", ["Alice likes tea."])


async def test_only_the_undecided_part_of_a_write_is_kept(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        return "no" if "fact 1." in last_text(body) or len(body["messages"]) > 2 else add_memory("decided")

    async with rig(redis_url, answer) as it, it.working():
        event = await it.event(await it.write(*(f"fact {number}." for number in range(10))))
    assert event.status == "kept_verbatim"
    assert sorted(set(it.store.texts())) == ["decided", *(f"fact {number}." for number in range(4))]


async def test_turns_that_waited_for_more_are_kept_with_the_ones_that_came(redis_url: str) -> None:
    async with rig(redis_url, script(tool_call("buffer_memory", reason="half a thought"), "no")) as it, it.working():
        await it.event(await it.write("I like"))
        assert it.store.buffered() == ["I like"]
        await kept(it, "green tea.")
    assert it.store.texts() == ["I like", "green tea."]
    assert it.store.buffered() == []


async def test_speaker_date_and_ends_are_kept(redis_url: str) -> None:
    said = (
        Source(role="user", content="I moved.", timestamp=datetime(2026, 3, 4, 12, tzinfo=UTC), name="Ann"),
        Source(role="assistant", content="Rome is warm.", timestamp=datetime(2026, 3, 4, 12, 1, tzinfo=UTC)),
    )
    ends = datetime(2031, 1, 1, tzinfo=UTC)
    job = MemoryJob(event_id="evt_00a1", namespace=ALICE, turns=said, expires_at=ends, metadata={"from": "test"})
    async with rig(redis_url, script("no")) as it, it.working():
        await it.writes.enqueue(job)
        event = await it.event("evt_00a1")
    user, assistant = (written.item for written in event.memories)
    assert (user.memory, user.sources[0].role, user.valid_from) == ("Ann: I moved.", "user", said[0].timestamp)
    assert (assistant.memory, assistant.sources[0].role) == ("assistant: Rome is warm.", "assistant")
    assert {(item.expires_at, str(item.metadata)) for item in (user, assistant)} == {(ends, "{'from': 'test'}")}


@pytest.mark.parametrize("size", [60, 800])
async def test_a_long_turn_is_kept_in_pieces_that_an_embedding_model_reads_whole(redis_url: str, size: int) -> None:
    long = " ".join(f"Sentence number {number} is about tea." for number in range(size))
    async with rig(redis_url, script("no")) as it, it.working():
        event = await it.event(await it.write(long))
    texts = [written.item.memory for written in event.memories]
    assert "".join(texts) == long
    assert max(map(len, texts)) <= 800
    assert size > 60 or all(text.rstrip().endswith(".") for text in texts)


async def test_redaction_holds_for_what_is_kept(redis_url: str) -> None:
    async with rig(redis_url, script("no")) as it, it.working():
        await kept(it, "My card is 4111 1111 1111 1111.")
    assert "4111" not in str(it.store.texts())


async def test_an_engine_that_is_away_is_waited_for(redis_url: str) -> None:
    async with rig(redis_url, script(*(503,) * 5, add_memory("Alice likes tea."))) as it, it.working():
        event = await it.event(await it.write(TEA))
    assert (event.status, it.store.texts()) == ("completed", ["Alice likes tea."])


async def test_an_engine_that_stays_away_leads_to_the_same_once_no_retry_is_left(redis_url: str) -> None:
    async with rig(redis_url, script(503)) as it:
        event_id = await it.write(TEA)
        await it.work.state.hset(it.writes.lanes.keys.job(event_id), "outages", "999")
        async with it.working():
            event = await it.event(event_id)
        calls = len(it.engine.calls)
    assert (event.status, calls, it.store.texts()) == ("kept_verbatim", 1, [TEA])


async def test_turns_that_the_engine_refuses_are_kept_after_the_last_attempt(redis_url: str) -> None:
    async with rig(redis_url, script(400), job_attempts=2) as it, it.working():
        event = await it.event(await it.write(TEA))
    assert (event.status, event.attempts, it.store.texts()) == ("kept_verbatim", 2, [TEA])
    assert "scripted 400" in (event.error or "")


@pytest.mark.parametrize("sync", [True, False])
async def test_an_add_a_chat_and_mem0_say_what_happened(redis_url: str, sync: bool) -> None:
    said = {"messages": [{"role": "user", "content": TEA}], "user_id": "alice"}
    async with api(redis_url, script("no")) as it, it.rig.working():
        added = (await it.post("/v1/memory/add", {**said, "sync": sync})).json
        event = (await it.rig.event(added["event_id"])) if not sync else None
        shown = (await it.get(f"/v1/memory/events/{added['event_id']}")).json
        assert shown["status"] == "kept_verbatim"
        assert added["status"] == ("kept_verbatim" if sync else "queued")
        assert event is None or event.status == "kept_verbatim"
        mem0 = (await it.post("/v3/memories/add", {**said, "async_mode": not sync})).json
        await it.rig.event(mem0["event_id"])
        ended = (await it.get(f"/v1/event/{mem0['event_id']}")).json
        assert (ended["status"], ended["kept_verbatim"]) == ("SUCCEEDED", True)
        assert [one["memory"] for one in ended["results"]] == [TEA]
        found = (await it.post("/v1/memory/search", {"query": "tea", "user_id": "alice"})).json
        assert [one["memory"] for one in found["data"]] == [TEA, TEA]


async def test_a_chat_recalls_what_was_kept(redis_url: str) -> None:
    async with api(redis_url, script("no")) as it, it.rig.working():
        body = {
            "model": "m",
            "messages": [{"role": "user", "content": TEA}],
            "memory": {"user_id": "alice", "sync": True},
        }
        first = (await it.post("/v1/chat/completions", body)).json["memory"]
        assert (first["write"]["status"], first["error"]) == ("kept_verbatim", None)
        body["messages"] = [{"role": "user", "content": "What do I drink?"}]
        second = (await it.post("/v1/chat/completions", body)).json["memory"]
    assert len(second["retrieved"]) == 2
    assert second["error"] is None
    assert TEA in str(it.rig.engine.calls[3]["messages"])


def test_the_key_of_a_kept_turn_is_a_place_and_stays_where_a_memorys_is_redacted() -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    drafts = tuple(MemoryDraft(key=key, value="Tea.", memory_type=kind) for kind in (KEPT, "RawTurn", "UserMemory"))
    add = StoreAdd(namespace=Namespace(tenant="t", user_id="ann"), drafts=drafts)
    clean = redacted_add(add, Redaction(SECRETS, find_by_rules, Counter()))
    assert [draft.key for draft in clean.drafts] == [key, key, "[key redacted]"]
