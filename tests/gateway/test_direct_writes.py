"""Texts that are kept as they are: written at once where their lane is idle, in batches, and queued where it is not."""

from typing import Any

import pytest

from gateway.memory.jobs import new_event_id, queued_event
from gateway.memory.operations import job_of
from memloop.wire.errors import Conflict
from memloop.wire.memory import Namespace
from memloop.wire.memory_requests import MemoryAdd
from tests.gateway.api_rig import api
from tests.gateway.redis_view import connected, keys
from tests.gateway.rig import ALICE, script, turns


def said(*texts: str, **fields: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts], "user_id": "alice", **fields}


async def test_a_text_is_kept_with_no_worker_at_all_and_its_event_can_be_asked_for(redis_url: str) -> None:
    async with api(redis_url, script(500)) as it:
        answer = await it.post("/v1/memory/add", said("Tea at five.", infer=False))
        event = await it.get(f"/v1/memory/events/{answer.json['event_id']}")
        newest = await it.get("/v1/memory/events?user_id=alice")
    assert (answer.status, answer.json["status"]) == (200, "completed")
    assert event.json == answer.json == newest.json["events"][0]
    assert it.rig.store.texts() == ["Tea at five."]


async def test_each_write_holds_the_lane_under_a_newer_token_and_leaves_it(redis_url: str) -> None:
    async with api(redis_url, script(500)) as it:
        for text in ("One.", "Two."):
            await it.post("/v1/memory/add", said(text, infer=False))
        async with connected(redis_url) as redis:
            assert await keys(redis, "*:lock:*") == []
    first, second = (add.fencing_token for add in it.rig.store.adds)
    assert first is not None
    assert second is not None
    assert first < second


async def test_a_write_waits_in_the_queue_behind_what_is_there(redis_url: str) -> None:
    async with api(redis_url, script("Nothing."), sync_wait_s=0.05) as it:
        await it.rig.write("I like tea.")
        answer = await it.post("/v1/memory/add", said("Tea at five.", infer=False))
        assert (answer.status, answer.json["status"]) == (202, "queued")
        assert it.rig.store.writes == []


async def test_a_write_is_queued_while_an_erasure_holds_the_lane(redis_url: str) -> None:
    async with api(redis_url, script(500), sync_wait_s=0.05) as it:
        token = await it.rig.writes.lanes.take_lane(ALICE.lane(), lease_ms=60_000, force=False)
        assert token is not None
        answer = await it.post("/v1/memory/add", said("Tea at five.", infer=False))
        assert answer.status == 202
        await it.rig.writes.lanes.leave_lane(ALICE.lane(), token)
        async with it.rig.working():
            assert (await it.rig.event(answer.json["event_id"])).status == "completed"
    assert it.rig.store.writes == ["Tea at five."]


async def test_a_write_whose_memories_are_erased_meanwhile_is_refused_and_not_queued(redis_url: str) -> None:
    async with api(redis_url, script(500), sync_wait_s=0.05) as it:
        it.rig.store.refuse_adds = 409
        answer = await it.post("/v1/memory/add", said("Tea at five.", infer=False))
        assert answer.status == 409
        assert (await it.rig.writes.lanes.depth()).jobs == 0
        async with connected(redis_url) as redis:
            assert await keys(redis, "*:lock:*") == []


async def test_no_event_is_recorded_after_an_erasure_has_taken_the_lane(redis_url: str) -> None:
    async with api(redis_url, script(500)) as it:
        queue = it.rig.writes
        token = await queue.lanes.take_lane(ALICE.lane(), lease_ms=60_000, idle=True)
        assert token is not None
        assert await queue.lanes.take_lane(ALICE.lane(), lease_ms=60_000, force=True) is not None
        add = MemoryAdd(messages=turns("Tea at five."), user_id="alice", infer=False)
        job = job_of(add, "local", event_id=new_event_id(ALICE))
        with pytest.raises(Conflict, match="were erased"):
            await queue.record_direct_write(job, queued_event(job), token=token)
        assert await queue.events.newest(ALICE, limit=10) == ()


async def test_a_write_that_the_store_cannot_take_now_is_queued_and_written_once_later(redis_url: str) -> None:
    async with api(redis_url, script(500), sync_wait_s=0.05) as it:
        it.rig.store.refuse_adds = 503
        answer = await it.post("/v1/memory/add", said("Tea at five.", infer=False))
        assert (answer.status, answer.json["status"]) == (202, "queued")
        it.rig.store.refuse_adds = None
        async with it.rig.working():
            assert (await it.rig.event(answer.json["event_id"])).status == "completed"
    assert it.rig.store.writes == ["Tea at five."]


async def test_a_text_that_the_store_refuses_is_refused_and_the_lane_is_free_again(redis_url: str) -> None:
    async with api(redis_url, script(500)) as it:
        it.rig.store.refuse_adds = 422
        answer = await it.post("/v1/memory/add", said("Tea at five.", infer=False))
        assert (answer.status, answer.error["type"]) == (422, "invalid_request_error")
        it.rig.store.refuse_adds = None
        assert (await it.post("/v1/memory/add", said("Tea at five.", infer=False))).status == 200


async def test_a_batch_keeps_the_texts_of_many_users_and_answers_each_in_its_place(redis_url: str) -> None:
    adds = [said("One.", "Two."), said("Three.", user_id="bob", agent_id="a", metadata={"n": 1})]
    async with api(redis_url, script(500)) as it:
        answer = await it.post("/v1/memory/batch", {"adds": adds})
    assert answer.status == 200, answer.raw
    texts = [[written["item"]["memory"] for written in one["memories"]] for one in answer.json["results"]]
    assert texts == [["One.", "Two."], ["Three."]]
    assert it.rig.store.adds[-1].namespace == Namespace(tenant="local", user_id="bob", agent_id="a")


async def test_a_batch_keeps_an_assistants_thoughts_as_a_single_add_does(redis_url: str) -> None:
    text = "<think>The user means Paris.</think>Paris."
    verbatim = {"messages": [{"role": "assistant", "content": text}]}
    async with api(redis_url, script(500)) as it:
        await it.post("/v1/memory/add", {**verbatim, "user_id": "alice", "infer": False})
        await it.post("/v1/memory/batch", {"adds": [{**verbatim, "user_id": "bob"}]})
    assert it.rig.store.texts() == [text, text]


async def test_a_batch_takes_no_idempotency_key(redis_url: str) -> None:
    async with api(redis_url, script(500)) as it:
        answer = await it.call("POST", "/v1/memory/batch", {"adds": [said("One.")]}, headers={"Idempotency-Key": "k"})
    assert (answer.status, answer.error["code"]) == (400, "idempotency_key_with_batch")
