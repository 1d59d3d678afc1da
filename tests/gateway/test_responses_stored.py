"""Stored responses: their quota, chains, erasure, and what happens without Redis."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.redis_server import RedisServer
from tests.fakes.streaming_engine import MODEL, FakeEngine, Hangs, Says, SendsBytes
from tests.gateway.api_rig import Api, api
from tests.gateway.redis_view import connected, keys, keys_that_hold
from tests.gateway.rig import eventually, script
from tests.gateway.running import Answer, Gateway, running_gateway

PATH = "/v1/responses"
SECRET = "quagga-4711"
ERASE = "/v1/memory?user_id=alice"


async def ask(
    gateway: Gateway, text: str = "Hi.", /, *, headers: Mapping[str, str] | None = None, **fields: object
) -> Answer:
    """A request of one message."""
    return await gateway.post(PATH, {"model": MODEL, "input": text, **fields}, headers=headers)


async def deleted(gateway: Gateway, path: str) -> Answer:
    async with gateway.http.delete(gateway.url + path) as response:
        return Answer(response.status, response.headers, await response.read())


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A Redis of the test's own."""
    server = RedisServer.start()
    yield server
    server.stop()


@pytest.fixture
async def small(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway with room for a few responses, of which one may continue two."""
    async with running_gateway(settings, tenant_response_bytes=10_000, response_chain=2) as running:
        yield running


async def test_a_full_tenant_is_refused_before_the_engine_is_asked_until_it_deletes(
    small: Gateway, engine: FakeEngine
) -> None:
    made = [await ask(small, "x" * 3000) for _ in range(2)]
    assert [answer.json["store"] for answer in made] == [True, True]
    refused = [await ask(small, "x" * 3000, stream=stream) for stream in (False, True)]
    assert [(answer.status, answer.error["code"]) for answer in refused] == [(429, "response_quota_exceeded")] * 2
    assert "Retry-After" in refused[0].headers
    assert len(engine.received) == 2
    assert (await ask(small, "x" * 3000, store=False)).status == 200
    assert (await deleted(small, f"{PATH}/{made[0].json['id']}")).status == 200
    assert (await ask(small, "x" * 3000)).json["store"] is True


async def test_an_answer_that_does_not_fit_reaches_its_client_and_is_not_called_stored(
    small: Gateway, engine: FakeEngine
) -> None:
    engine.will(Says("y" * 10_000))
    answer = await ask(small)
    assert (answer.status, answer.json["store"]) == (200, False)
    assert (await small.get(f"{PATH}/{answer.json['id']}")).status == 404
    assert await small.metric('responses_not_kept_total{reason="full"}') == 1


async def test_a_chain_has_a_most_length(small: Gateway) -> None:
    answers = [await ask(small)]
    for _ in range(3):
        answers.append(await ask(small, previous_response_id=answers[-1].json["id"]))
    assert [answer.status for answer in answers] == [200, 200, 200, 400]
    assert answers[-1].error["code"] == "response_chain_too_long"


async def test_a_chain_has_a_most_size(settings: GatewaySettings) -> None:
    async with running_gateway(settings, max_json_bytes=4_000) as gateway:
        first = await ask(gateway, "x" * 1500)
        second = await ask(gateway, "x" * 1500, previous_response_id=first.json["id"])
        third = await ask(gateway, previous_response_id=second.json["id"])
    assert (second.status, third.status, third.error["code"]) == (200, 400, "response_chain_too_long")


async def test_a_chain_without_one_of_its_links_is_refused(gateway: Gateway) -> None:
    first = await ask(gateway)
    second = await ask(gateway, previous_response_id=first.json["id"])
    assert (await deleted(gateway, f"{PATH}/{first.json['id']}")).status == 200
    third = await ask(gateway, previous_response_id=second.json["id"])
    assert (third.status, third.error["code"]) == (400, "previous_response_not_found")
    assert (await gateway.get(f"{PATH}/{second.json['id']}")).status == 200


async def test_two_responses_may_continue_the_same_one(gateway: Gateway, engine: FakeEngine) -> None:
    first = await ask(gateway, "One.")
    for text in ("Left.", "Right."):
        await ask(gateway, text, previous_response_id=first.json["id"])
        said = [message["content"] for message in engine.last.json["messages"]]
        assert said == ["One.", "Hello.", text]


async def test_instructions_are_not_carried_on(gateway: Gateway, engine: FakeEngine) -> None:
    first = await ask(gateway, instructions="Be rude.")
    await ask(gateway, previous_response_id=first.json["id"], instructions="Be kind.")
    assert engine.last.json["messages"][0] == {"role": "system", "content": "Be kind."}
    assert "rude" not in str(engine.last.json)


async def test_an_unknown_id_cannot_be_continued(gateway: Gateway) -> None:
    for response_id in ("resp_1", "resp_" + "0" * 32, "", "../x", "resp_" + "é" * 32, "x" * 5000):
        answer = await ask(gateway, previous_response_id=response_id)
        assert (answer.status, answer.error["param"]) == (400, "previous_response_id")


async def test_input_items_have_pages(gateway: Gateway) -> None:
    items = [{"role": "user", "content": f"{number}"} for number in range(5)]
    made = await gateway.post(PATH, {"model": MODEL, "input": items})
    path, seen, after = f"{PATH}/{made.json['id']}/input_items?limit=2&order=asc", list[str](), ""
    while True:
        page = (await gateway.get(path + after)).json
        seen += [item["content"][0]["text"] for item in page["data"]]
        if not page["has_more"]:
            break
        after = f"&after={page['last_id']}"
    assert seen == ["0", "1", "2", "3", "4"]
    assert (await gateway.get(f"{path}&after=msg_1")).status == 404
    newest = (await gateway.get(f"{PATH}/{made.json['id']}/input_items?limit=1")).json
    assert (newest["data"][0]["content"][0]["text"], newest["has_more"]) == ("4", True)


async def test_what_continues_a_response_keeps_it_for_longer(settings: GatewaySettings, redis_url: str) -> None:
    async with running_gateway(settings) as gateway:
        first = (await ask(gateway, user="alice")).json["id"]
        async with connected(redis_url) as client:
            [record] = await keys(client, f"*:response:local:{first}")
            await client.pexpire(record, 100_000)
            await ask(gateway, previous_response_id=first)
            assert await client.pttl(record) > 100_000


async def test_without_redis_only_what_is_not_stored_is_answered(
    settings: GatewaySettings, engine: FakeEngine, redis: RedisServer
) -> None:
    async with running_gateway(settings, redis_url=redis.url) as gateway:
        made = (await ask(gateway)).json["id"]
        asked = len(engine.received)
        redis.kill()
        refused = [
            await ask(gateway),
            await ask(gateway, stream=True),
            await ask(gateway, previous_response_id=made, store=False),
            await gateway.get(f"{PATH}/{made}"),
            await deleted(gateway, f"{PATH}/{made}"),
        ]
        assert [(answer.status, answer.error["code"]) for answer in refused] == [(503, "unavailable")] * 5
        assert all("Retry-After" in answer.headers for answer in refused)
        assert len(engine.received) == asked
        assert (await ask(gateway, store=False)).json["store"] is False


async def test_an_answer_survives_the_loss_of_redis_and_is_not_called_stored(
    settings: GatewaySettings, engine: FakeEngine, redis: RedisServer
) -> None:
    async with running_gateway(settings, redis_url=redis.url) as gateway:
        engine.will(Says(pieces=["Hel", "lo."], pause_s=0.5), Says())
        body = {"model": MODEL, "input": "Hi.", "stream": True}
        async with gateway.http.post(gateway.url + PATH, json=body) as response:
            async for line in response.content:
                if b"output_text.delta" in line:
                    break
            redis.kill()
            rest = await response.read()
        assert rest.count(b"event: response.completed") == 1
        assert b'"store":false' in rest.split(b"event: response.completed")[1]
        assert await gateway.metric('responses_not_kept_total{reason="unavailable"}') == 1


async def test_a_response_that_an_erasure_overtakes_is_not_kept(redis_url: str) -> None:
    async with api(redis_url, script(f"You said {SECRET}."), hang_at=1) as it:
        asking = asyncio.ensure_future(it.post(PATH, {"model": "m", "input": SECRET, "user": "alice"}))
        await it.rig.engine.hanging.wait()
        await erased(it)
        it.rig.engine.let_go.set()
        answer = await asking
        assert (answer.status, answer.json["store"]) == (200, False)
        await nowhere(redis_url)
        assert (await it.post(PATH, {"model": "m", "input": "Hi.", "user": "alice"})).json["store"] is True


@pytest.mark.parametrize(
    "named", [{"user": "alice"}, {"metadata": {"user_id": "alice"}}, {"memory": {}, "user": "alice"}]
)
async def test_an_erased_users_responses_and_their_replays_are_gone(redis_url: str, named: dict[str, object]) -> None:
    async with api(redis_url, script(f"You said {SECRET}.", "Fine.")) as it:
        body = {"model": "m", "input": SECRET, **named}
        made = (await it.call("POST", PATH, body, headers={"Idempotency-Key": "k"})).json["id"]
        kept = (await it.post(PATH, {"model": "m", "input": "Hi.", "user": "bob"})).json["id"]
        await erased(it)
        await nowhere(redis_url)
        assert ((await it.get(f"{PATH}/{made}")).status, (await it.get(f"{PATH}/{kept}")).status) == (404, 200)


async def test_an_erasure_of_one_agent_leaves_the_others_responses(redis_url: str) -> None:
    async with api(redis_url, script("Fine.")) as it:
        ids = {
            agent: (
                await it.post(PATH, {"model": "m", "input": "Hi.", "memory": {"user_id": "alice", "agent_id": agent}})
            )
            for agent in ("a", "b")
        }
        assert (await it.call("DELETE", f"{ERASE}&agent_id=a")).status == 200
        found = {agent: (await it.get(f"{PATH}/{answer.json['id']}")).status for agent, answer in ids.items()}
    assert found == {"a": 404, "b": 200}


async def erased(it: Api) -> None:
    answer = await it.call("DELETE", ERASE)
    assert answer.status == 200, answer.raw


async def nowhere(redis_url: str) -> None:
    async with connected(redis_url) as client:
        assert await keys_that_hold(client, SECRET.encode()) == []


async def test_a_deleted_response_is_not_replayed(gateway: Gateway) -> None:
    key = {"Idempotency-Key": "k"}
    first, again = [await ask(gateway, headers=key) for _ in range(2)]
    assert (first.raw, "Idempotent-Replayed" in again.headers) == (again.raw, True)
    assert (await deleted(gateway, f"{PATH}/{first.json['id']}")).status == 200
    new = await ask(gateway, headers=key)
    assert new.json["id"] != first.json["id"]
    assert (await ask(gateway, stream=True, headers=key)).error["code"] == "idempotency_key_with_stream"


async def test_a_client_that_leaves_after_the_last_token_has_its_response_kept(
    gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(Hangs("Hello.", finished=True))
    response_id = ""
    async with gateway.http.post(gateway.url + PATH, json={"model": MODEL, "input": "Hi.", "stream": True}) as response:
        async for line in response.content:
            if b'"id":"resp_' in line:
                response_id = line.partition(b'"id":"')[2].partition(b'"')[0].decode()
            if b"response.output_item.done" in line:
                break

    async def kept() -> bool:
        return (await gateway.get(f"{PATH}/{response_id}")).status == 200

    await eventually(kept)


@pytest.fixture
async def passing(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway whose engines speak the Responses API."""
    async with running_gateway(settings, engine_responses=True) as running:
        yield running


async def test_a_request_without_memory_and_state_passes_through_if_the_operator_says_so(
    passing: Gateway, engine: FakeEngine
) -> None:
    raw = b'{"model":"m",  "input":"x", "store": false, "tools":[{"type":"web_search"}]}'
    engine.will(SendsBytes([b'{"odd" :1}']))
    answer = await passing.post(PATH, raw)
    assert (answer.raw, engine.last.path, engine.last.raw) == (b'{"odd" :1}', "responses", raw)
    events = b'event: response.completed\ndata: {"type":"response.completed"}\n\n'
    engine.will(SendsBytes([events], "text/event-stream; charset=utf-8"))
    assert (await ask(passing, store=False, stream=True)).raw == events


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({}, {}),
        ({"store": None}, {}),
        ({"store": False, "memory": {"user_id": "u1"}}, {}),
        ({"store": False}, {"X-Memory-User-Id": "u1"}),
    ],
    ids=["stored", "stored by default", "memory", "the header"],
)
async def test_a_request_with_memory_or_state_is_translated_in_any_case(
    passing: Gateway, engine: FakeEngine, fields: dict[str, object], headers: dict[str, str]
) -> None:
    assert (await ask(passing, **fields, headers=headers)).json["output"][0]["content"][0]["text"] == "Hello."
    assert engine.last.path == "chat/completions"
