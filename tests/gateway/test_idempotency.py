"""``Idempotency-Key``: a POST that changes state happens once."""

import asyncio
from typing import Any

import pytest
from pydantic import SecretStr

from gateway.idempotency.idempotency import KEEP_MS
from gateway.settings import GatewaySettings
from tests.fakes.job_engine import tool_call
from tests.fakes.recall_store import FakeStore
from tests.fakes.redis_server import RedisServer
from tests.fakes.streaming_engine import MODEL, FakeEngine, Hangs, Refuses, Says, SendsBytes
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS, Api, api, configured
from tests.gateway.long_reads import PATH as READ
from tests.gateway.long_reads import asked, reader
from tests.gateway.redis_view import command, connected, keys, keys_that_hold
from tests.gateway.rig import script
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway

ADD = "/v1/memory/add"
KEY = {"Idempotency-Key": "order-1"}
BUFFER = tool_call("buffer_memory", reason="half a thought")


def said(text: str = "I like tea.", **fields: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "user_id": "alice", **fields}


async def keyed(it: Api, path: str, body: object, **headers: str) -> Answer:
    return await it.call("POST", path, body, headers={**KEY, **headers})


async def chatted(gateway: Gateway, text: str = "Hi.", **fields: object) -> Answer:
    return await gateway.post(CHAT, question(text, **fields), headers=KEY)


def is_replay(answer: Answer) -> bool:
    return answer.headers.get("Idempotent-Replayed") == "true"


async def the_record(url: str) -> str:
    async with connected(url) as redis:
        (record,) = await keys(redis, "memloop:once:*")
    return record


async def test_a_repeated_chat_replays_its_answer_and_remembers_once(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Says("First."), Says("Second."))
    first = await chatted(gateway, memory={"user_id": "u1"})
    again = await chatted(gateway, memory={"user_id": "u1"})
    assert (again.status, again.raw) == (200, first.raw)
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert (is_replay(first), is_replay(again)) == (False, True)
    assert len(engine.received) == len(await gateway.queued_turns()) == 1


async def test_a_deleted_read_is_not_replayed(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        first = await keyed(it, READ, asked(background=True))
        await it.call("DELETE", f"{READ}/{first.json['id']}")
        again = await keyed(it, READ, asked(background=True))
        assert (again.status, is_replay(again)) == (202, False)
        assert again.json["id"] != first.json["id"]


async def test_a_repeated_add_is_one_write(redis_url: str) -> None:
    async with api(redis_url, script(BUFFER)) as it:
        first, again = await keyed(it, ADD, said()), await keyed(it, ADD, said())
        assert (again.status, again.json, is_replay(again)) == (202, first.json, True)
        assert (await it.rig.writes.lanes.depth()).jobs == 1


async def test_a_repeated_flush_is_one_decision(redis_url: str) -> None:
    async with api(redis_url, script(BUFFER)) as it:
        async with it.rig.working():
            await it.decided(said("I like"))
        path = "/v1/memory/buffers/flush"
        first, again = [await keyed(it, path, {"user_id": "alice"}) for _ in range(2)]
        assert (again.status, again.json, is_replay(again)) == (202, first.json, True)
        assert (await it.rig.writes.lanes.depth()).jobs == 1


@pytest.mark.parametrize(("background", "status"), [(False, 200), (True, 202)], ids=["at once", "background"])
async def test_a_repeated_read_is_one_read(redis_url: str, background: bool, status: int) -> None:
    async with api(redis_url, reader) as it:
        first, again = [await keyed(it, READ, asked(background=background)) for _ in range(2)]
        assert (again.status, again.json, is_replay(again)) == (status, first.json, True)
        assert len((await it.get(READ)).json["data"]) == 1


async def test_the_key_with_another_body_is_a_conflict(gateway: Gateway, engine: FakeEngine) -> None:
    await chatted(gateway, "One.")
    other = await chatted(gateway, "Two.")
    assert (other.status, other.error["type"], other.error["code"]) == (409, "conflict_error", "idempotency_key_reused")
    assert len(engine.received) == 1


async def test_the_key_for_another_user_is_a_conflict_and_never_the_first_ones_answer(
    gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(Says("Alice's locker code is 482."))
    answers = [
        await gateway.post(CHAT, question(), headers={**KEY, "X-Memory-User-Id": user})
        for user in ("alice", "bob", "alice")
    ]
    assert [answer.status for answer in answers] == [200, 409, 200]
    assert answers[1].error["code"] == "idempotency_key_reused"
    assert b"locker code" not in answers[1].raw
    assert answers[2].raw == answers[0].raw


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, question()),
        ("/v1/messages", {**question(), "max_tokens": 8}),
        ("/v1/responses", {"model": MODEL, "input": "Hi."}),
    ],
    ids=["chat", "messages", "responses"],
)
@pytest.mark.parametrize(
    "others", [{"X-Memory-Agent-Id": "b"}, {}, {"X-Memory-User-Id": ""}], ids=["other agent", "no agent", "no user"]
)
async def test_the_key_with_other_ids_in_the_headers_is_a_conflict(
    gateway: Gateway, engine: FakeEngine, path: str, body: dict[str, Any], others: dict[str, str]
) -> None:
    engine.will(Says("Agent a's locker code is 482."))
    ids = {"X-Memory-User-Id": "alice"}
    first = await gateway.post(path, body, headers={**KEY, **ids, "X-Memory-Agent-Id": "a"})
    other = await gateway.post(path, body, headers={**KEY, **ids, **others})
    again = await gateway.post(path, body, headers={**KEY, **ids, "X-Memory-Agent-Id": "a"})
    assert (first.status, other.status, other.error["code"]) == (200, 409, "idempotency_key_reused")
    assert (again.raw, is_replay(again)) == (first.raw, True)


async def test_the_key_of_a_chat_with_memory_is_not_that_of_one_without(gateway: Gateway, engine: FakeEngine) -> None:
    body = question(user="alice")
    first = await gateway.post(CHAT, body, headers={**KEY, "X-Memory-User-Id": "alice"})
    other = await gateway.post(CHAT, body, headers=KEY)
    assert (first.status, other.status) == (200, 409)
    assert len(engine.received) == 1


@pytest.mark.parametrize(("path", "field"), [(CHAT, "memory"), (ADD, "memories"), ("/v3/memories/add", "results")])
async def test_a_key_with_fewer_scopes_is_shown_no_answer_of_one_with_more(
    settings: GatewaySettings, store: FakeStore, path: str, field: str
) -> None:
    keys_of_a = f"{configured('a', 'all')},{configured('a', 'few', 'scopes=chat+memory:write')}"
    body = question() if path == CHAT else said(infer=False)
    async with running_gateway(
        settings.model_copy(update={"api_keys": SecretStr(keys_of_a), "sync_wait_s": 0.01})
    ) as it:
        first, other, again = [
            await it.post(path, body, headers={**KEY, "X-API-Key": key, "X-Memory-User-Id": "alice"})
            for key in ("all", "few", "all")
        ]
    assert field in first.json
    assert (other.status, other.json["error"]["code"]) == (409, "idempotency_key_reused")
    assert (again.raw, is_replay(again)) == (first.raw, True)


async def test_a_duplicate_of_a_running_request_gets_retry_after(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Hangs())
    first = asyncio.create_task(chatted(gateway))
    await engine.until_running(1)
    duplicate = await chatted(gateway)
    first.cancel()
    await engine.until_running(0)
    assert (duplicate.status, duplicate.error["code"]) == (409, "idempotency_key_in_use")
    assert int(duplicate.headers["Retry-After"]) >= 1


async def test_a_key_belongs_to_its_tenant_and_route(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=TWO_TENANTS) as it:
        answers = [
            await keyed(it, path, body, Authorization=f"Bearer {key}")
            for key in (ALICE_KEY, BOB_KEY)
            for path, body in ((ADD, said()), (READ, asked()))
        ]
    assert [answer.status for answer in answers] == [202, 200, 202, 200]
    assert not any(map(is_replay, answers))


async def test_a_failure_is_not_kept_but_its_write_stays_one(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Refuses(500, {"error": {"message": "broken"}}), Says("Better."))
    failed, mended = await chatted(gateway, memory={"user_id": "u1"}), await chatted(gateway, memory={"user_id": "u1"})
    assert (failed.status, mended.status, is_replay(mended)) == (502, 200, False)
    assert len(await gateway.queued_turns()) == 1
    assert (await chatted(gateway, "Something else.")).status == 409


async def test_a_refusal_leaves_the_key_free(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Refuses(400, {"error": {"message": "too long"}}))
    assert (await chatted(gateway, "Too long.")).status == 400
    assert (await chatted(gateway, "Shorter.")).status == 200


async def test_an_attempt_whose_process_died_is_repeated_under_the_same_ids(redis_url: str) -> None:
    async with api(redis_url, script(BUFFER)) as it:
        first = await keyed(it, ADD, said())
        record = await the_record(redis_url)
        async with connected(redis_url) as redis:
            await command(redis, "HDEL", record, "status", "answer")
            await command(redis, "HSET", record, "until", "1")
        again = await keyed(it, ADD, said())
        assert (again.json, is_replay(again)) == (first.json, False)
        assert (await it.rig.writes.lanes.depth()).jobs == 1


async def test_a_record_lasts_a_day(gateway: Gateway, redis_url: str) -> None:
    await chatted(gateway)
    async with connected(redis_url) as redis:
        left_ms = await command(redis, "PTTL", await the_record(redis_url))
    assert KEEP_MS - 60_000 < left_ms <= KEEP_MS


async def test_an_answer_over_the_limit_is_not_kept_and_not_given_twice(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    async with running_gateway(settings.model_copy(update={"idempotency_max_bytes": 100})) as gateway:
        engine.will(Says("x" * 200))
        assert (await chatted(gateway)).status == 200
        again = await chatted(gateway)
    assert (again.status, again.error["code"]) == (409, "idempotency_answer_not_kept")
    assert len(engine.received) == 1


@pytest.mark.parametrize("path", [CHAT, READ])
async def test_a_stream_with_a_key_is_refused(gateway: Gateway, engine: FakeEngine, path: str) -> None:
    body = question(stream=True) if path == CHAT else asked(stream=True)
    answer = await gateway.post(path, body, headers=KEY)
    assert (answer.status, answer.error["code"]) == (400, "idempotency_key_with_stream")
    assert not engine.received


async def test_an_engine_that_streams_unasked_is_relayed_and_not_kept(gateway: Gateway, engine: FakeEngine) -> None:
    head = b'"id":"x","object":"chat.completion.chunk","created":1,"model":"m"'
    choice = b'{"index":0,"delta":{"content":"Hi."},"finish_reason":"stop"}'
    raw = b'data: {%b,"choices":[%b]}\n\ndata: [DONE]\n\n' % (head, choice)
    engine.will(SendsBytes([raw], "text/event-stream"))
    assert (await chatted(gateway)).raw == raw
    assert (await chatted(gateway)).status == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "\u00e9"], ids=["empty", "too long", "not ASCII"])
async def test_a_key_that_is_none_is_refused(gateway: Gateway, key: str) -> None:
    answer = await gateway.post(CHAT, question(), headers={"Idempotency-Key": key})
    assert (answer.status, answer.error["param"]) == (400, "idempotency-key")


async def test_without_redis_a_request_with_a_key_is_refused_and_one_without_is_answered(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    server = RedisServer.start()
    async with running_gateway(settings.model_copy(update={"redis_url": type(settings.redis_url)(server.url)})) as it:
        server.stop()
        refused = await chatted(it)
        assert (refused.status, refused.error["code"]) == (503, "unavailable")
        assert int(refused.headers["Retry-After"]) >= 1
        assert not engine.received
        assert (await it.chat()).status == 200


async def test_an_erasure_takes_the_kept_answers_of_the_user(redis_url: str) -> None:
    async with api(redis_url, script(500)) as it, it.rig.working():
        await keyed(it, ADD, said("Tea at five.", infer=False))
        assert await keys_that_hold(it.rig.work.state, b"Tea at five")
        await it.call("DELETE", "/v1/memory?user_id=alice")
        assert await keys_that_hold(it.rig.work.state, b"Tea at five") == []


async def test_deleting_a_read_takes_its_kept_answer(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        read = await keyed(it, READ, asked())
        await it.call("DELETE", f"{READ}/{read.json['id']}")
        assert await keys_that_hold(it.rig.work.state, b"In Rome") == []
