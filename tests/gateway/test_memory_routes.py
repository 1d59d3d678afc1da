"""``/v1/memory`` over HTTP."""

import asyncio
from typing import Any

import pytest

from memloop.wire.memory import Namespace
from tests.fakes.job_engine import add_memory, tool_call
from tests.fakes.redis_server import RedisServer
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS, Api, api
from tests.gateway.redis_view import keys_that_hold, stream_length
from tests.gateway.rig import eventually, script

BUFFER = tool_call("buffer_memory", reason="half a thought")
TEA = add_memory("Alice likes tea.")


def said(*texts: str, **fields: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts], "user_id": "alice", **fields}


async def added(it: Api, *texts: str) -> Any:
    """A memory, stored as it is."""
    answer = await it.post("/v1/memory/add", said(*texts, infer=False))
    assert answer.status == 200, answer.raw
    return answer.json["memories"][0]["item"]


async def test_an_add_is_accepted_immediately_and_its_event_shows_the_outcome(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it:
        answer = await it.post("/v1/memory/add", said("I like tea."))
        assert (answer.status, answer.json["status"]) == (202, "queued")
        event_id = answer.json["event_id"]
        assert (await it.get(f"/v1/memory/events/{event_id}")).json["status"] == "queued"
        async with it.rig.working():
            await it.rig.event(event_id)
        event = (await it.get(f"/v1/memory/events/{event_id}")).json
    assert event["status"] == "completed"
    assert event["decisions"][0]["action"] == "add"
    assert event["memories"][0]["item"]["memory"] == "Alice likes tea."


async def test_a_synchronous_add_answers_the_ended_event(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it, it.rig.working():
        answer = await it.post("/v1/memory/add", said("I like tea.", sync=True))
    assert (answer.status, answer.json["status"]) == (200, "completed")


async def test_a_synchronous_add_that_takes_too_long_answers_202_and_goes_on(redis_url: str) -> None:
    async with api(redis_url, script(TEA), hang_at=1, sync_wait_s=0.2) as it, it.rig.working():
        answer = await it.post("/v1/memory/add", said("I like tea.", sync=True))
        assert answer.status == 202
        it.rig.engine.let_go.set()
        assert (await it.rig.event(answer.json["event_id"])).status == "completed"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"{", 400, None),
        (b"[]", 400, None),
        ({"messages": [{"role": "user", "content": "x"}]}, 422, "user_id"),
        (said("x", colour="red"), 400, "colour"),
        (said(), 422, "messages"),
        (said("  ", "\n"), 422, "messages"),
        (said("x" * 32_769), 422, "messages.0.content"),
        (said("x", timestamp="0001-01-01T00:00:00+01:00"), 422, "timestamp"),
        (said("x", expires_at="9999-12-31T23:59:59-01:00"), 422, "expires_at"),
        (said("x", metadata={"k" * 257: 1}), 422, "metadata"),
        (said("x", metadata={"k": [True] * 1000}), 422, "metadata"),
    ],
    ids=[
        "malformed",
        "array",
        "no user",
        "unknown field",
        "no messages",
        "blank",
        "too long",
        "before the calendar",
        "after the calendar",
        "a long key of metadata",
        "many values of metadata",
    ],
)
async def test_a_bad_add_is_refused_in_openais_shape(redis_url: str, body: Any, status: int, param: str) -> None:
    async with api(redis_url, script(TEA)) as it:
        answer = await it.post("/v1/memory/add", body)
        assert (answer.status, answer.error["param"]) == (status, param)
        assert (await it.rig.writes.lanes.depth()).jobs == 0


@pytest.mark.parametrize("text", [rb"half \ud83d", rb"nul \u0000 end"], ids=["lone surrogate", "NUL"])
async def test_odd_characters_are_remembered_and_break_nothing(redis_url: str, text: bytes) -> None:
    body = b'{"user_id": "alice", "sync": true, "messages": [{"role": "user", "content": "' + text + b'"}]}'
    async with api(redis_url, script(TEA)) as it, it.rig.working():
        answer = await it.post("/v1/memory/add", body)
    assert (answer.status, answer.json["status"]) == (200, "completed")
    assert len(it.rig.store.texts("RawTurn")) == 1


async def test_search_finds_what_was_added_in_the_namespace_only(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it, it.rig.working():
        await added(it, "Tea at five.")
        mine = await it.post("/v1/memory/search", {"query": "tea", "user_id": "alice", "top_k": 3})
        hers = await it.post("/v1/memory/search", {"query": "tea", "user_id": "eve"})
    assert [hit["item"]["memory"] for hit in mine.json["results"]] == ["Tea at five."]
    assert (hers.json["data"], hers.json["pending"], hers.json["degraded"]) == ([], [], False)


async def test_a_memory_is_read_listed_edited_and_deleted_by_its_id(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it, it.rig.working():
        item_id = (await added(it, "Tea at five."))["id"]
        path = f"/v1/memory/{item_id}"
        assert (await it.get(path)).json["memory"] == "Tea at five."
        assert [item["id"] for item in (await it.get("/v1/memory?user_id=alice")).json["items"]] == [item_id]
        edited = await it.call("PATCH", path, {"memory": "Tea at six."}, headers={"If-Match": '"1"'})
        assert (edited.json["memory"], edited.json["version"]) == ("Tea at six.", 2)
        assert len((await it.get(f"{path}/history")).json["versions"]) == 1
        assert (await it.call("DELETE", path)).json == {"id": item_id, "object": "memory", "deleted": True}
        assert (await it.get(path)).status == 404


@pytest.mark.parametrize(("if_match", "status"), [("7", 412), ("nonsense", 422), ("*", 200)])
async def test_if_match_guards_an_edit(redis_url: str, if_match: str, status: int) -> None:
    async with api(redis_url, script(TEA)) as it, it.rig.working():
        item_id = (await added(it, "Tea at five."))["id"]
        answer = await it.call("PATCH", f"/v1/memory/{item_id}", {"memory": "x"}, headers={"If-Match": if_match})
    assert answer.status == status


async def test_events_are_listed_newest_first_and_by_namespace(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it:
        ids: list[str] = []
        for agent in "ab":
            ids.append((await it.post("/v1/memory/add", said("x", agent_id=agent))).json["event_id"])
            await asyncio.sleep(0.002)  # events are ordered by milliseconds
        everything = await it.get("/v1/memory/events?user_id=alice")
        one_agent = await it.get("/v1/memory/events?user_id=alice&agent_id=a")
        newest = await it.get("/v1/memory/events?user_id=alice&limit=1")
    assert [event["event_id"] for event in everything.json["events"]] == ids[::-1]
    assert [event["event_id"] for event in one_agent.json["events"]] == ids[:1]
    assert [event["event_id"] for event in newest.json["events"]] == ids[1:]


async def test_buffers_are_listed_and_flushed(redis_url: str) -> None:
    async with api(redis_url, script(BUFFER, TEA)) as it, it.rig.working():
        await it.decided(said("I like"))
        listed = await it.get("/v1/memory/buffers?user_id=alice")
        flushed = await it.post("/v1/memory/buffers/flush", {"user_id": "alice"})
        assert flushed.status == 202
        (queued,) = flushed.json["events"]
        event = await it.rig.event(queued["event_id"])
        empty = await it.post("/v1/memory/buffers/flush", {"user_id": "alice"})
    assert [turn["content"] for turn in listed.json["buffers"][0]["turns"]] == ["I like"]
    assert [written.item.memory for written in event.memories] == ["Alice likes tea."]
    assert empty.json == {"events": []}


async def test_a_flush_settles_every_buffer_of_the_user_under_an_id_of_its_own(redis_url: str) -> None:
    places = [{"agent_id": "a1"}, {"agent_id": "a2"}, {"agent_id": "a1", "run_id": "r"}, {}]
    async with api(redis_url, script(*[BUFFER] * 4, *[TEA] * 4)) as it, it.rig.working():
        for place in places:
            await it.decided(said("I like", **place))
        flushed = await it.post("/v1/memory/buffers/flush", {"user_id": "alice"})
        ids = [event["event_id"] for event in flushed.json["events"]]
        events = [await it.rig.event(event_id) for event_id in ids]
        left = await it.get("/v1/memory/buffers?user_id=alice")
    assert (len(ids), len({*ids})) == (4, 4)
    assert [event.status for event in events] == ["completed"] * 4
    assert left.json["buffers"] == []


async def test_a_repeated_flush_with_an_idempotency_key_queues_each_buffer_once(redis_url: str) -> None:
    async with api(redis_url, script(*[BUFFER] * 2, *[TEA] * 2)) as it:
        async with it.rig.working():
            for agent in ("a1", "a2"):
                await it.decided(said("I like", agent_id=agent))
        key = {"Idempotency-Key": "k"}
        answers = [
            await it.call("POST", "/v1/memory/buffers/flush", {"user_id": "alice"}, headers=key) for _ in range(2)
        ]
        listed = await it.get("/v1/memory/events?user_id=alice")
    assert answers[0].json == answers[1].json
    assert len({event["event_id"] for event in answers[0].json["events"]}) == 2
    assert len(listed.json["events"]) == 4


async def test_an_erasure_takes_items_buffers_waiting_writes_and_events_and_counts_them(redis_url: str) -> None:
    async with api(redis_url, script(BUFFER)) as it:
        async with it.rig.working():
            await added(it, "Tea at five.")
            await it.decided(said("I like"))
        await it.post("/v1/memory/add", said("never to be seen"))
        answer = await it.call("DELETE", "/v1/memory?user_id=alice")
        derived = ("conversations", "files", "long_reads", "replayed", "responses", "traces", "vector_stores")
        assert answer.json == {"vectors": 2, "buffers": 1, "queue": 1, "events": 3} | dict.fromkeys(derived, 0)
        assert (await it.get("/v1/memory/events?user_id=alice")).json == {
            "object": "list",
            "data": [],
            "has_more": False,
            "events": [],
        }
        assert await keys_that_hold(it.rig.work.state, b"never to be seen", b"I like", b"Tea at five") == []
        async with it.rig.working():
            await asyncio.sleep(0.3)
        assert it.rig.store.items == {}


async def test_an_erasure_in_the_middle_of_a_write_wins(redis_url: str) -> None:
    async with api(redis_url, script(TEA), hang_at=1) as it, it.rig.working():
        event_id = (await it.post("/v1/memory/add", said("I like tea."))).json["event_id"]
        await it.rig.engine.hanging.wait()
        answer = await it.call("DELETE", "/v1/memory?user_id=alice")
        assert (answer.json["queue"], answer.json["vectors"]) == (1, 1)
        it.rig.engine.let_go.set()
        await eventually(lambda: it.rig.engine.active == 0)
        await asyncio.sleep(0.2)
        assert it.rig.store.items == {}
        assert (await it.get(f"/v1/memory/events/{event_id}")).status == 404
        assert await keys_that_hold(it.rig.work.state, b"I like tea", b"Alice likes") == []
        again = await it.post("/v1/memory/add", said("I like tea.", sync=True))
        assert again.json["status"] == "completed"


async def test_an_erasure_takes_dead_letters_too(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it, it.rig.working():
        it.rig.store.refuse_memories = 422
        assert (await it.post("/v1/memory/add", said("poison", sync=True))).json["status"] == "failed"
        await it.call("DELETE", "/v1/memory?user_id=alice")
        assert await stream_length(it.rig.work.state, "*:dead") == 0
        assert await keys_that_hold(it.rig.work.state, b"poison") == []


async def test_an_erasure_of_one_agent_leaves_the_others(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it:
        for agent in "ab":
            await it.post("/v1/memory/add", said("x", agent_id=agent))
        answer = await it.call("DELETE", "/v1/memory?user_id=alice&agent_id=a")
        left = (await it.get("/v1/memory/events?user_id=alice")).json["events"]
    assert (answer.json["queue"], len(left)) == (1, 1)


async def test_another_tenants_ids_do_not_exist(redis_url: str) -> None:
    alice, bob = {"Authorization": f"Bearer {ALICE_KEY}"}, {"Authorization": f"Bearer {BOB_KEY}"}
    async with api(redis_url, script(TEA), api_keys=TWO_TENANTS) as it, it.rig.working():
        body = said("Tea at five.", infer=False)
        mine = (await it.call("POST", "/v1/memory/add", body, headers=alice)).json
        item_id = mine["memories"][0]["item"]["id"]
        paths = [f"/v1/memory/events/{mine['event_id']}", f"/v1/memory/{item_id}", f"/v1/memory/{item_id}/history"]
        assert [(await it.call("GET", path, headers=alice)).status for path in paths] == [200, 200, 200]
        assert [(await it.call("GET", path, headers=bob)).status for path in paths] == [404, 404, 404]
        assert (await it.call("DELETE", f"/v1/memory/{item_id}", headers=bob)).status == 404
        erased = await it.call("DELETE", "/v1/memory?user_id=alice", headers=bob)
        assert set(erased.json.values()) == {0}
        assert (await it.call("GET", "/v1/memory/events?user_id=alice", headers=bob)).json == {
            "object": "list",
            "data": [],
            "has_more": False,
            "events": [],
        }
        assert (await it.get("/v1/memory?user_id=alice")).status == 401


async def test_without_redis_an_add_is_refused_with_a_time_to_come_back(redis_url: str) -> None:
    server = RedisServer.start()
    async with api(server.url, script(TEA)) as it:
        await it.rig.write("x", namespace=Namespace(tenant="local", user_id="warm"))
        server.stop()
        for answer in (
            await it.post("/v1/memory/add", said("I like tea.")),
            await it.get("/v1/memory/events?user_id=alice"),
            await it.call("DELETE", "/v1/memory?user_id=alice"),
        ):
            assert (answer.status, answer.error["code"]) == (503, "unavailable")
            assert int(answer.headers["Retry-After"]) >= 1


async def test_redis_gone_while_a_synchronous_add_waits_is_a_503(redis_url: str) -> None:
    server = RedisServer.start()
    async with api(server.url, script(TEA)) as it:
        waiting = asyncio.create_task(it.post("/v1/memory/add", said("I like tea.", sync=True)))
        await asyncio.sleep(0.3)
        server.stop()
        answer = await waiting
    assert (answer.status, answer.error["type"]) == (503, "upstream_error")


async def test_without_the_store_a_search_is_a_503_and_an_add_is_still_accepted(redis_url: str) -> None:
    async with api(redis_url, script(TEA)) as it:
        it.rig.store.down = True
        search = await it.post("/v1/memory/search", {"query": "tea", "user_id": "alice"})
        assert search.status == 503
        assert search.error["type"] == "upstream_error"
        assert (await it.post("/v1/memory/add", said("I like tea."))).status == 202
