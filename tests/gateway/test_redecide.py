"""What was kept verbatim is decided again: on request, by itself, once, and without a loss when a worker dies."""

import asyncio
import hashlib
import random
import re
import signal
from pathlib import Path

import pytest

from gateway.memory.kept_turns import KEPT
from memloop.wire.feedback import Feedback
from memloop.wire.memory import Namespace, Scope
from tests.fakes.job_engine import Body, Reply, add_memory, last_text, tool_call
from tests.fakes.job_store import Hold
from tests.fakes.processes import PATIENCE_S
from tests.fakes.real_store import real_store
from tests.gateway.api_rig import OPERATED, api
from tests.gateway.rig import Rig, eventually, rig, script
from tests.gateway.test_kept_verbatim import TEA, at_random, kept
from tests.gateway.worker_process import worker_process

LIKES = add_memory("Alice likes green tea.")
SAID = {"messages": [{"role": "user", "content": TEA}], "user_id": "alice"}
READER = f"local:{hashlib.sha256(b'reader').hexdigest()} scopes=memory:read"
WRITER = f"local:{hashlib.sha256(b'writer').hexdigest()}"
OFF = {"memory_redecisions": 0}


async def again(it: Rig, event_id: str) -> None:
    """Queue a new decision."""
    await it.work.memory.kept.redecide(it.writes, event_id, tenant="local")


async def test_a_working_writer_replaces_what_was_kept(redis_url: str) -> None:
    async with rig(redis_url, script("no", "no", LIKES), **OFF) as it, it.working():
        event_id = await kept(it)
        await again(it, event_id)
        event = await it.event(event_id)
    assert (event.status, event.redecided, event.error) == ("completed", 1, None)
    assert [record.action for record in event.decisions] == ["invalid", "invalid", "add"]
    assert [written.item.memory for written in event.memories] == ["Alice likes green tea."]
    assert [source.content for source in event.memories[0].item.sources] == [TEA]
    assert it.store.texts() == ["Alice likes green tea."]


async def test_a_writer_that_fails_again_leaves_what_was_kept(redis_url: str) -> None:
    async with rig(redis_url, script("no"), **OFF) as it, it.working():
        event_id = await kept(it)
        for _ in range(3):
            await again(it, event_id)
            await it.event(event_id)
        event = await it.event(event_id)
    assert (event.status, event.redecided) == ("kept_verbatim", 3)
    assert [written.item.memory for written in event.memories] == [TEA]
    assert it.store.texts() == [TEA]


async def test_what_the_writer_decides_is_replaced_and_the_rest_stays_kept(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        shown = str(body["messages"][1]["content"])
        return add_memory(f"decided {len(it.engine.calls)}") if works and "fact 1." not in shown else "no"

    works = False
    async with rig(redis_url, answer, **OFF) as it, it.working():
        event_id = await kept(it, *(f"fact {number}." for number in range(10)))
        assert len(it.store.texts()) == 10
        works = True
        await again(it, event_id)
        event = await it.event(event_id)
        assert (event.status, event.redecided) == ("kept_verbatim", 1)
        assert it.store.texts() == [*(f"fact {number}." for number in range(4)), "decided 9", "decided 10"]
        assert [written.item.memory for written in event.memories] == it.store.texts()
        await again(it, event_id)
        await it.event(event_id)
    assert [text for text in it.store.texts() if text.startswith("fact")] == [f"fact {number}." for number in range(4)]
    assert len(it.store.texts()) == 6


async def test_an_engine_that_refuses_the_new_decision_leaves_what_was_kept(redis_url: str) -> None:
    async with rig(redis_url, script("no", "no", 400), job_attempts=2, **OFF) as it, it.working():
        event_id = await kept(it)
        await again(it, event_id)
        event = await it.event(event_id)
    assert (event.status, it.store.texts()) == ("kept_verbatim", [TEA])
    assert "scripted 400" in (event.error or "")


async def test_a_writer_that_searches_does_not_find_what_it_decides_on(redis_url: str) -> None:
    search = tool_call("search_memory", query="tea")
    async with rig(redis_url, script("no", "no", search, LIKES), **OFF) as it, it.working():
        event_id = await kept(it)
        await again(it, event_id)
        await it.event(event_id)
    assert TEA not in str(it.engine.calls[-1]["messages"][-1])


async def test_an_edited_or_deleted_memory_is_the_users(redis_url: str) -> None:
    async with rig(redis_url, script("no", "no", LIKES), **OFF) as it, it.working():
        event_id = await kept(it, TEA, "I have a cat.", "I live in Rome.")
        edited, deleted, _ = (one.item.id for one in (await it.event(event_id)).memories)
        space, item = it.store.items[edited]
        it.store.items[edited] = (space, item.model_copy(update={"memory": "mine", "version": 2}))
        del it.store.items[deleted]
        await again(it, event_id)
        assert (await it.event(event_id)).status == "completed"
    shown = last_text(it.engine.calls[-1])
    assert "I live in Rome." in shown
    assert TEA not in shown
    assert "I have a cat." not in shown
    assert it.store.texts() == ["mine", "Alice likes green tea."]


async def test_a_kept_turn_with_a_verdict_is_left_as_it_is(redis_url: str) -> None:
    async with rig(redis_url, script("no", "no", LIKES), **OFF) as it, it.working():
        event_id = await kept(it, TEA, "I live in Rome.")
        judged = (await it.event(event_id)).memories[0].item.id
        space, item = it.store.items[judged]
        wrong = Feedback(verdict="wrong", at=item.created_at)
        it.store.items[judged] = (space, item.model_copy(update={"feedback": wrong}))
        await again(it, event_id)
        assert (await it.event(event_id)).status == "completed"
    assert TEA not in last_text(it.engine.calls[-1])
    assert it.store.texts() == [TEA, "Alice likes green tea."]


async def test_a_long_turn_is_decided_as_one(redis_url: str) -> None:
    long = " ".join(f"Fact {number} about tea." for number in range(60))
    async with rig(redis_url, script("no", "no", LIKES), **OFF) as it, it.working():
        event_id = await kept(it, long)
        assert len(it.store.texts()) > 1
        await again(it, event_id)
        await it.event(event_id)
    assert it.store.texts() == ["Alice likes green tea."]
    assert long in last_text(it.engine.calls[-1])


async def test_no_other_write_is_decided_again(redis_url: str) -> None:
    async with api(redis_url, script(LIKES), **OFF) as it, it.rig.working():
        event_id = (await it.post("/v1/memory/add", SAID)).json["event_id"]
        await it.rig.event(event_id)
        refused = await it.call("POST", f"/v1/memory/events/{event_id}/redecide")
        missing = await it.call("POST", "/v1/memory/events/evt_0/redecide")
        unknown = await it.post("/v1/memory/redecide", {"user": "alice"})
        parameter = await it.call("POST", f"/v1/memory/events/{event_id}/redecide?force=1")
    assert (refused.status, refused.error["code"]) == (409, "write_not_kept_verbatim")
    assert (missing.status, missing.error["code"]) == (404, "not_found")
    assert (unknown.status, parameter.status) == (400, 400)


async def test_the_route_decides_again_once_however_often_it_is_called(redis_url: str) -> None:
    async with api(redis_url, script("no", "no", LIKES), **OFF) as it:
        async with it.rig.working():
            event_id = await kept(it.rig)
        path = f"/v1/memory/events/{event_id}/redecide"
        answers = await asyncio.gather(*(it.call("POST", path) for _ in range(5)))
        assert sorted(answer.status for answer in answers) == [202, 409, 409, 409, 409]
        waiting = (await it.get(f"/v1/memory/events/{event_id}")).json
        assert (waiting["status"], [one["item"]["memory"] for one in waiting["memories"]]) == ("queued", [TEA])
        async with it.rig.working():
            assert (await it.rig.event(event_id)).status == "completed"
    assert it.rig.store.texts() == ["Alice likes green tea."]


async def test_a_users_or_a_tenants_kept_writes_are_decided_again_together(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        return LIKES if works else "no"

    works = False
    async with api(redis_url, answer, **OFF) as it, it.rig.working():
        ids = [await kept(it.rig) for _ in range(3)]
        bob = await it.rig.write(TEA, namespace=Namespace(tenant="local", user_id="bob"))
        await it.rig.event(bob)
        works = True
        first = await it.post("/v1/memory/redecide", {"user_id": "alice"})
        assert (first.status, first.json["has_more"]) == (202, False)
        assert {one["event_id"] for one in first.json["events"]} == set(ids)
        for event_id in ids:
            assert (await it.rig.event(event_id)).status == "completed"
        rest = await it.post("/v1/memory/redecide", {})
        assert [one["event_id"] for one in rest.json["events"]] == [bob]
        assert (await it.rig.event(bob)).status == "completed"
        assert (await it.post("/v1/memory/redecide", {})).json["events"] == []


async def test_a_key_that_only_reads_cannot_and_another_tenants_writes_are_not_found(redis_url: str) -> None:
    async with api(redis_url, script("no"), api_keys=f"{READER},{WRITER}", **OFF) as it, it.rig.working():
        event_id = await kept(it.rig)
        for path in (f"/v1/memory/events/{event_id}/redecide", "/v1/memory/redecide"):
            answer = await it.call("POST", path, {}, headers={"X-API-Key": "reader"})
            assert (answer.status, answer.error["code"]) == (403, "permission_denied")
    async with api(redis_url, script("no"), api_keys=OPERATED, **OFF) as it:
        foreign = await it.call("POST", f"/v1/memory/events/{event_id}/redecide", headers={"X-API-Key": "alice-key"})
        none = await it.call("POST", "/v1/memory/redecide", {}, headers={"X-API-Key": "alice-key"})
    assert foreign.status == 404
    assert none.json["events"] == []


async def test_an_erased_write_is_not_decided_again(redis_url: str) -> None:
    async with api(redis_url, script("no", "no", LIKES), **OFF) as it:
        async with it.rig.working():
            event_id = await kept(it.rig)
        await again(it.rig, event_id)
        assert (await it.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        async with it.rig.working():
            later = await it.rig.write("I have a cat.", namespace=Namespace(tenant="local", user_id="bob"))
            await it.rig.event(later)
        assert (await it.call("POST", f"/v1/memory/events/{event_id}/redecide")).status == 404
        assert (await it.rig.work.memory.kept.redecide_some(it.rig.writes, Scope(tenant="local"), most=10))[0] == []
    assert "Alice likes green tea." not in [
        item.memory for space, item in it.rig.store.items.values() if space.user_id == "alice"
    ]


async def test_an_erasure_during_the_new_decision_wins(redis_url: str) -> None:
    async with api(redis_url, script("no", "no", LIKES), hang_at=3, **OFF) as it, it.rig.working():
        event_id = await kept(it.rig)
        await again(it.rig, event_id)
        async with asyncio.timeout(PATIENCE_S):
            await it.rig.engine.hanging.wait()
        assert (await it.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        it.rig.engine.let_go.set()
        other = await it.rig.write("I have a cat.", namespace=Namespace(tenant="local", user_id="bob"))
        await it.rig.event(other)
    assert [space.user_id for space, _ in it.rig.store.items.values() if space.user_id == "alice"] == []


async def test_by_itself_a_write_is_decided_again_once_when_the_writer_works_again(redis_url: str) -> None:
    def answer(body: Body) -> Reply:
        return LIKES if "works" in str(body["messages"]) else "no"

    async with rig(redis_url, answer, sweep_every_s=0.05) as it, it.working():
        hopeless = await kept(it)
        await asyncio.sleep(0.3)
        assert (await it.event(hopeless)).redecided == 0  # no other write was decided since
        assert (await it.event(await it.write("It works again."))).status == "completed"

        async def decided() -> bool:
            return (await it.writes.events.get("local", hopeless)).redecided == 1

        await eventually(decided)
        await asyncio.sleep(0.3)
        event = await it.writes.events.get("local", hopeless)
    assert (event.status, event.redecided) == ("kept_verbatim", 1)


async def test_an_operator_turns_it_off(redis_url: str) -> None:
    async with rig(redis_url, script("no", "no", LIKES), sweep_every_s=0.05, **OFF) as it, it.working():
        event_id = await kept(it)
        assert (await it.event(await it.write("It works again."))).status == "completed"
        await asyncio.sleep(0.3)
        assert (await it.event(event_id)).redecided == 0


async def test_a_real_store_finds_what_was_kept_and_after_the_new_decision_only_what_was_decided(
    redis_url: str, tmp_path: Path
) -> None:
    async with (
        real_store(redis_url, tmp_path) as store,
        api(redis_url, script("no", "no", LIKES), store_url=store, **OFF) as it,
        it.rig.working(),
    ):
        event_id = await kept(it.rig)
        asked = {"query": "What tea do I like?", "user_id": "alice"}
        [found] = (await it.post("/v1/memory/search", asked)).json["data"]
        assert (found["memory"], found["memory_type"], found["sources"][0]["role"]) == (TEA, KEPT, "user")
        await again(it.rig, event_id)
        assert (await it.rig.event(event_id)).status == "completed"
        [found] = (await it.post("/v1/memory/search", asked)).json["data"]
        assert found["memory"] == "Alice likes green tea."
        assert (await it.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        assert (await it.call("POST", f"/v1/memory/events/{event_id}/redecide")).status == 404


def at_store(method: str, words: str, *, after: bool) -> Hold:
    return Hold(lambda found, _, body: found == method and words in body, "after" if after else "before")


POINTS = {
    "before the kept memories are read": lambda: at_store("GET", "", after=False),
    "in the call of the model": lambda: None,
    "before the new memories are stored": lambda: at_store("POST", "UserMemory", after=False),
    "after the new memories are stored": lambda: at_store("POST", "UserMemory", after=True),
    "before the first kept memory is deleted": lambda: at_store("DELETE", "", after=False),
    "after the first kept memory is deleted": lambda: at_store("DELETE", "", after=True),
}


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_in_the_middle_loses_nothing_and_doubles_nothing(redis_url: str, point: str) -> None:
    async with rig(redis_url, script("no", "no", LIKES), **OFF) as it:
        async with it.working():
            event_id = await kept(it, TEA, "I have a cat.")
        await again(it, event_id)
        it.store.hold = POINTS[point]()
        it.engine.hang_at = None if it.store.hold else 3
        reached = it.store.hold.reached if it.store.hold else it.engine.hanging
        async with worker_process(it) as process:
            async with asyncio.timeout(PATIENCE_S):
                await reached.wait()
            await process.signalled(signal.SIGKILL)
        assert it.store.texts()  # at every moment something of it is there
        it.engine.hang_at = None
        it.engine.let_go.set()
        if it.store.hold is not None:
            it.store.hold.let_go.set()
        async with it.working():
            event = await it.event(event_id)
    assert (event.status, event.redecided) == ("completed", 1)
    assert it.store.texts() == ["Alice likes green tea."]
    assert it.store.writes.count("Alice likes green tea.") == 1


async def told(redis_url: str, number: int) -> tuple[set[str], list[str]]:
    """Tell facts to a writer that answers at random. Return those that are lost, and how the writes ended."""
    dice, bad = random.Random(number), at_random(number)

    def answer(body: Body) -> Reply:
        if dice.random() < 0.3:
            facts = re.findall(r"fact \d{4}: the code of door \d+ is \d+\.", last_text(body))
            return add_memory(*facts) if facts else bad(body)
        return bad(body)

    facts = [f"fact {one:04}: the code of door {one} is {one * 7919 % 10000}." for one in range(number)]
    parts = [
        facts[start : start + 2] if start % 4 else [facts[start], facts[start + 1]] for start in range(0, number, 2)
    ]
    async with rig(redis_url, answer, sweep_every_s=0.2, worker_concurrency=16) as it, it.working():
        spaces = [Namespace(tenant="local", user_id=f"user-{one % 20}") for one in range(len(parts))]
        ids = [await it.write(*part, namespace=space) for part, space in zip(parts, spaces, strict=True)]
        ends = [(await it.event(one)).status for one in ids]
        found = {text.removeprefix("user: ") for text in it.store.texts()}
    return {fact for fact in facts if not any(fact in text for text in found)}, ends


async def test_a_hundred_turns_through_a_writer_that_answers_at_random_are_all_found(redis_url: str) -> None:
    lost, ends = await told(redis_url, 100)
    assert lost == set()
    assert {"completed", "kept_verbatim"} == set(ends)


@pytest.mark.slow
async def test_a_thousand_turns_through_a_writer_that_answers_at_random_are_all_found(redis_url: str) -> None:
    lost, ends = await told(redis_url, 1000)
    assert lost == set()
    assert {"completed", "kept_verbatim"} == set(ends)
