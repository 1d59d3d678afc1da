"""Memory writes against the real memory store: what the small store of the other tests stands for holds there too."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memloop.wire.memory import Namespace, Source
from tests.fakes.job_engine import Body, Reply, add_memory, tool_call
from tests.fakes.real_store import real_store
from tests.gateway.rig import ALICE, Rig, enqueued, rig, script, turns
from tests.gateway.test_worker_kill import Kill, killed_at

BUFFER = tool_call("buffer_memory", reason="half a thought")
SEARCH = tool_call("search_memory", query="tea")
TEA = add_memory("Alice likes green tea.")


def keyed(key: str, value: str) -> Body:
    """MemReader's decision to keep one fact under this key."""
    draft: Body = {"key": key, "memory_type": "UserMemory", "value": value, "tags": []}
    return tool_call("add_memory", memory_list=[draft], summary="kept")


NURSE = add_memory("Alice works as a nurse in Leeds.")
BAKER = keyed("profession", "Alice works as a baker in Leeds.")


@pytest.fixture
async def store_url(redis_url: str, tmp_path: Path) -> AsyncGenerator[str]:
    """The base URL of a running store."""
    async with real_store(redis_url, tmp_path) as url:
        yield url


async def memories(it: Rig, namespace: Namespace = ALICE) -> list[str]:
    """The namespace's memories as the store lists them."""
    return [item.memory for item in (await it.work.memory.store.items(namespace)).items]


async def test_a_write_is_stored_and_found(redis_url: str, store_url: str) -> None:
    async with rig(redis_url, script(SEARCH, TEA), store_url=store_url) as it, it.working():
        event = await it.event(await it.write("I like green tea."))
        assert event.status == "completed", event.error
        assert await memories(it) == ["Alice likes green tea."]


async def test_buffered_turns_come_back_and_are_cleared(redis_url: str, store_url: str) -> None:
    async with rig(redis_url, script(BUFFER, TEA), store_url=store_url) as it, it.working():
        await it.event(await it.write("I like"))
        (buffer,) = (await it.work.memory.store.buffers("local", user_id="alice")).buffers
        assert [turn.content for turn in buffer.turns] == ["I like"]
        event = await it.event(await it.write("green tea."))
        assert [turn.content for turn in event.memories[0].item.sources] == ["I like", "green tea."]
        assert (await it.work.memory.store.buffers("local", user_id="alice")).buffers == ()


GIVEN: dict[str, Any] = {"metadata": {"source": "crm"}, "expires_at": datetime(2040, 1, 1, tzinfo=UTC)}
"""What a client gives with an add for the memories that come of it."""


@pytest.mark.parametrize("next_turns", [(), turns("Milk is fine.")], ids=["a flush", "another add"])
async def test_a_buffered_turns_memory_has_what_was_given_with_the_turn(
    redis_url: str, store_url: str, next_turns: tuple[Source, ...]
) -> None:
    milk = add_memory("Alice drinks milk.")
    async with rig(redis_url, script(BUFFER, TEA, milk), store_url=store_url) as it, it.working():
        await it.event(await enqueued(it.writes, turns("I like green"), **GIVEN))
        event = await it.event(await enqueued(it.writes, next_turns))
        items = {one.item.memory: one.item for one in event.memories}
    tea = items["Alice likes green tea."]
    assert (tea.metadata, tea.expires_at) == (GIVEN["metadata"], GIVEN["expires_at"])
    assert [turn.content for turn in tea.sources] == ["I like green"]
    others = [(item.metadata, item.expires_at) for item in items.values() if item is not tea]
    assert others == [({}, None)] * len(next_turns)


async def test_buffered_turns_are_decided_with_those_that_were_given_the_same(redis_url: str, store_url: str) -> None:
    async with rig(redis_url, script(BUFFER, TEA), store_url=store_url) as it, it.working():
        for text in ("I like", "green tea."):
            event = await it.event(await enqueued(it.writes, turns(text), **GIVEN))
    (tea,) = (one.item for one in event.memories)
    assert [turn.content for turn in tea.sources] == ["I like", "green tea."]
    assert (tea.metadata, tea.expires_at) == (GIVEN["metadata"], GIVEN["expires_at"])


async def test_what_was_given_with_turns_outlives_that_they_were_kept_verbatim(redis_url: str, store_url: str) -> None:
    def answer(body: Body) -> Reply:
        if len(it.engine.calls) == 1:
            return BUFFER
        if not works:
            return "no"
        return TEA if "green" in str(body["messages"][1]["content"]) else add_memory("Alice drinks milk.")

    works = False
    async with rig(redis_url, answer, store_url=store_url, memory_redecisions=0) as it, it.working():
        await it.event(await enqueued(it.writes, turns("I like green"), **GIVEN))
        event = await it.event(await it.write("Milk is fine."))
        assert event.status == "kept_verbatim"
        works = True
        await it.work.memory.kept.redecide(it.writes, event.event_id, tenant="local")
        again = (await it.event(event.event_id)).memories
    assert {one.item.memory: (one.item.metadata, one.item.expires_at) for one in again} == {
        "Alice likes green tea.": (GIVEN["metadata"], GIVEN["expires_at"]),
        "Alice drinks milk.": ({}, None),
    }


async def test_texts_are_stored_as_they_are_without_inference(redis_url: str, store_url: str) -> None:
    async with rig(redis_url, script(500), store_url=store_url) as it, it.working():
        event = await it.event(await enqueued(it.writes, turns("Tea.", "Milk."), infer=False))
        assert (event.status, sorted(await memories(it))) == ("completed", ["Milk.", "Tea."])


async def test_a_killed_write_completes_once(redis_url: str, store_url: str) -> None:
    async with rig(redis_url, script(SEARCH, TEA), store_url=store_url) as it:
        event_id = await it.write("I like green tea.")
        await killed_at(it, Kill(engine_call=2))
        async with it.working():
            event = await it.event(event_id)
        assert (event.status, len(event.memories)) == ("completed", 1)
        assert await memories(it) == ["Alice likes green tea."]
        erased = await it.work.memory.store.erase(ALICE)
    assert erased.vectors == 2  # the raw turn and the memory, each once


async def test_namespaces_of_one_user_keep_their_memories_apart(redis_url: str, store_url: str) -> None:
    work = ALICE.model_copy(update={"agent_id": "work"})
    async with rig(redis_url, script(add_memory("At work."), add_memory("At home.")), store_url=store_url) as it:
        async with it.working():
            await it.event(await it.write("one", namespace=work))
            await it.event(await it.write("two", namespace=ALICE.model_copy(update={"agent_id": "home"})))
        assert await memories(it, work) == ["At work."]
        assert sorted(await memories(it)) == ["At home.", "At work."]


async def test_a_changed_fact_replaces_the_old_one_under_another_key(redis_url: str, store_url: str) -> None:
    async with rig(redis_url, script(NURSE, BAKER, "1: updates 1"), store_url=store_url) as it, it.working():
        await it.event(await it.write("I work as a nurse in Leeds."))
        event = await it.event(await it.write("I am a baker now."))
        assert await memories(it) == ["Alice works as a baker in Leeds."]
    (changed,) = event.memories
    assert changed.outcome == "superseded"
    assert [record.action for record in event.decisions] == ["add", "relate"]


async def test_an_unusable_relation_keeps_both_facts(redis_url: str, store_url: str) -> None:
    async with rig(redis_url, script(NURSE, BAKER, "Hard to say."), store_url=store_url) as it, it.working():
        await it.event(await it.write("I work as a nurse in Leeds."))
        await it.event(await it.write("I am a baker now."))
        assert len(await memories(it)) == 2
