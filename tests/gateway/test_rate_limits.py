"""Requests and tokens per minute of one key."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.queue import Hold
from gateway.responses.background.jobs import ResponseHandler
from gateway.settings import GatewaySettings
from memloop.chunking import EstimatingSplitter
from memloop_state.queue.jobs import Worker
from tests.fakes.job_engine import Body, Reply, last_text
from tests.fakes.redis_server import RedisServer
from tests.fakes.streaming_engine import MODEL, USAGE, FakeEngine, Hangs, Refuses, Says, SendsBytes
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS, Api, api
from tests.gateway.long_reads import PATH as READ
from tests.gateway.long_reads import asked, reader
from tests.gateway.redis_view import command, connected, keys
from tests.gateway.rig import eventually, script
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway

SPENT = USAGE["total_tokens"]


@asynccontextmanager
async def limited(settings: GatewaySettings, *, requests: int = 0, tokens: int = 0) -> AsyncGenerator[Gateway]:
    changes = {"requests_per_minute": requests, "tokens_per_minute": tokens}
    async with running_gateway(settings.model_copy(update=changes)) as gateway:
        yield gateway


def left(answer: Answer, kind: str) -> int:
    return int(answer.headers[f"x-ratelimit-remaining-{kind}"])


async def counted(gateway: Gateway) -> int:
    """The tokens in the window of the only key."""
    counts = await command(gateway.redis, "HGETALL", "memloop:rate:local:")
    return sum(int(count) for field, count in counts.items() if field.startswith("t"))


async def until_counted(gateway: Gateway, tokens: int) -> None:
    async def holds() -> bool:
        return await counted(gateway) == tokens

    await eventually(holds)


def total(answered: dict[str, Any]) -> int:
    return answered["usage"]["total_tokens"]


async def ended_response(it: Api, **fields: object) -> dict[str, Any]:
    """A background response once it is over."""
    answer = await it.post("/v1/responses", {"model": "m", "background": True, **fields})
    found: dict[str, Any] = {}

    async def is_over() -> bool:
        nonlocal found
        found = (await it.get(f"/v1/responses/{answer.json['id']}")).json
        return found["status"] not in ("queued", "in_progress")

    await eventually(is_over)
    return found


async def grow_older(url: str, seconds: int) -> None:
    """Move every count of every window into the past."""
    async with connected(url) as redis:
        for window in await keys(redis, "memloop:rate:*"):
            counts = await command(redis, "HGETALL", window)
            await command(redis, "DEL", window)
            for field, count in counts.items():
                older = f"{field[0]}{int(field[1:]) - seconds}"
                await command(redis, "HSET", window, older, count)


async def test_without_limits_there_are_no_headers_and_no_counts(gateway: Gateway) -> None:
    answer = await gateway.chat()
    assert not [name for name in answer.headers if name.lower().startswith("x-ratelimit")]
    assert await counted(gateway) == 0


async def test_answers_carry_the_remaining_allowance(settings: GatewaySettings) -> None:
    async with limited(settings, requests=10, tokens=1000) as gateway:
        first, second = await gateway.chat(), await gateway.chat()
    assert (first.headers["x-ratelimit-limit-requests"], first.headers["x-ratelimit-limit-tokens"]) == ("10", "1000")
    assert (left(first, "requests"), left(second, "requests")) == (9, 8)
    assert 980 < left(second, "tokens") < 1000
    assert first.headers["x-ratelimit-reset-requests"] == "61s"


async def test_one_request_too_many_gets_retry_after(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with limited(settings, requests=2) as gateway:
        began = time.time()
        answers = [await gateway.chat() for _ in range(3)]
        passed_s = time.time() - began
    assert [answer.status for answer in answers] == [200, 200, 429]
    refused = answers[-1]
    assert (refused.error["type"], refused.error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert 60 - passed_s <= int(refused.headers["Retry-After"]) <= 61
    assert left(refused, "requests") == 0
    assert len(engine.received) == 2


async def test_the_window_slides(settings: GatewaySettings, redis_url: str) -> None:
    async with limited(settings, requests=2) as gateway:
        began = time.time()
        await gateway.chat()
        await grow_older(redis_url, 40)
        await gateway.chat()
        waiting = await gateway.chat()
        passed_s = time.time() - began
        await grow_older(redis_url, 22)
        answers = [await gateway.chat() for _ in range(2)]
    assert 20 - passed_s <= int(waiting.headers["Retry-After"]) <= 21
    assert [answer.status for answer in answers] == [200, 429]


@pytest.mark.parametrize(
    "fields",
    [{}, {"stream": True, "stream_options": {"include_usage": True}}, {"memory": {"user_id": "u1"}}],
    ids=["whole", "stream", "with memory"],
)
async def test_tokens_are_what_the_engine_counted(settings: GatewaySettings, fields: dict[str, object]) -> None:
    async with limited(settings, tokens=1000) as gateway:
        await gateway.chat("A rather long question, longer than its usage says. " * 5, **fields)
        await until_counted(gateway, SPENT)


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"stream": True, "memory": {"user_id": "u1"}}])
async def test_a_responses_tokens_are_what_the_engine_counted(
    settings: GatewaySettings, fields: dict[str, object]
) -> None:
    async with limited(settings, tokens=1000) as gateway:
        answer = await gateway.post("/v1/responses", {"model": MODEL, "input": "A long question. " * 10, **fields})
        assert answer.status == 200
        assert left(answer, "tokens") < 1000
        await until_counted(gateway, SPENT)


async def test_a_stream_without_usage_counts_its_events(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with limited(settings, tokens=1000) as gateway:
        event = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
        engine.will(SendsBytes([event] * 50, "text/event-stream"))
        await gateway.chat("Hi.", stream=True)

        async def holds() -> bool:
            return 50 < await counted(gateway) < 70

        await eventually(holds)


async def test_a_key_that_has_spent_its_tokens_waits(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with limited(settings, tokens=50) as gateway:
        engine.will(Says(extra={"usage": {"total_tokens": 60}}))
        assert (await gateway.chat()).status == 200
        await until_counted(gateway, 60)
        refused = await gateway.chat()
    assert (refused.status, left(refused, "tokens")) == (429, 0)
    assert "tokens per minute" in refused.error["message"]


async def test_a_request_over_the_whole_limit_is_let_into_an_empty_window_only(settings: GatewaySettings) -> None:
    async with limited(settings, tokens=50) as gateway:
        long = "many words " * 100
        assert (await gateway.chat(long)).status == 200
        await until_counted(gateway, SPENT)
        assert (await gateway.chat(long)).status == 429


async def test_what_the_engine_refused_costs_no_tokens(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with limited(settings, tokens=1000) as gateway:
        engine.will(Refuses(400, {"error": {"message": "no"}}))
        assert (await gateway.chat()).status == 400
        await until_counted(gateway, 0)


async def test_a_read_counts_all_that_it_spent(redis_url: str) -> None:
    async with api(redis_url, reader, tokens_per_minute=10_000) as it:
        answer = await it.post(READ, asked())
        await until_counted(it.gateway, answer.json["usage"]["total_tokens"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_read_that_fails_costs_what_it_spent_until_then(redis_url: str, stream: bool) -> None:
    def breaks(body: Body) -> Reply:
        return 400 if "boxed" in last_text(body) else reader(body)

    async with api(redis_url, breaks, tokens_per_minute=10_000) as it:
        await it.post(READ, asked(stream=stream))
        (read,) = (await it.get(READ)).json["data"]
        assert (read["status"], read["usage"]["llm_calls"]) == ("failed", 2)
        await until_counted(it.gateway, total(read))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("end", ["cancel", "delete", "leave"])
async def test_a_read_that_its_client_ends_costs_what_it_spent_and_the_prompt_that_was_cut(
    redis_url: str, end: str, stream: bool
) -> None:
    async with api(redis_url, reader, hang_at=3, tokens_per_minute=10_000) as it:
        waiting = asyncio.create_task(it.post(READ, asked(stream=stream)))
        await it.rig.engine.hanging.wait()
        (read,) = (await it.get(READ)).json["data"]
        if end == "leave":
            waiting.cancel()
        elif end == "cancel":
            await it.post(f"{READ}/{read['id']}/cancel", {})
        else:
            await it.call("DELETE", f"{READ}/{read['id']}")
        await asyncio.wait({waiting})
        prompt = "\n".join(message["content"] for message in it.rig.engine.calls[-1]["messages"])
        await until_counted(it.gateway, total(read) + EstimatingSplitter().count(prompt))


async def test_a_read_that_the_engine_refuses_at_once_costs_no_tokens(redis_url: str) -> None:
    async with api(redis_url, lambda body: 400, tokens_per_minute=10_000) as it:
        assert (await it.post(READ, asked())).status == 400
        await until_counted(it.gateway, 0)


@pytest.mark.parametrize("text", ["Hi.", "A long question. " * 100], ids=["more than estimated", "less"])
async def test_a_background_response_costs_what_the_engine_counted(redis_url: str, text: str) -> None:
    async with api(redis_url, script("Hello. " * 50), tokens_per_minute=10_000) as it, it.rig.working():
        response = await ended_response(it, input=text)
        assert response["status"] == "completed"
        await until_counted(it.gateway, total(response))


async def test_a_background_response_that_the_engine_refuses_costs_no_tokens(redis_url: str) -> None:
    async with api(redis_url, lambda body: 400, tokens_per_minute=10_000) as it, it.rig.working():
        assert (await ended_response(it, input="Hi."))["status"] == "failed"
        await until_counted(it.gateway, 0)


async def test_a_background_response_whose_worker_dies_after_the_answer_is_charged_once(redis_url: str) -> None:
    async with api(redis_url, script("Hello. " * 50), tokens_per_minute=10_000) as it:
        answer = await it.post("/v1/responses", {"model": "m", "input": "Hi.", "background": True})
        background = it.rig.work.background
        handler = ResponseHandler(background, it.rig.work.chat, it.rig.work.vector_stores)
        worker = Worker("w", lease_ms=60_000, idle_ms=60_000)
        lease = await background.queue.take(worker, partition=background.queue.keys.of_id(answer.json["id"]))
        assert lease is not None
        for _ in range(2):  # the second run is another worker's, which has the answer in the journal
            await handler.run(lease, Hold(background.queue, lease))
        response = (await it.get(f"/v1/responses/{answer.json['id']}")).json
        assert len(it.rig.engine.calls) == 1
        await until_counted(it.gateway, total(response))


async def test_a_chat_that_ends_by_its_clients_deadline_costs_its_estimate(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    async with limited(settings, tokens=2_000) as gateway:
        ends: list[int] = []
        for _ in range(3):
            engine.will(Hangs())
            waits = {"X-Request-Timeout": "0.3"}
            ends.append((await gateway.post(CHAT, question("word " * 900), headers=waits)).status)
    assert ends == [504, 429, 429]


async def test_keys_have_windows_of_their_own(redis_url: str) -> None:
    async with api(redis_url, script("ok"), api_keys=TWO_TENANTS, requests_per_minute=1) as it:
        search = {"query": "tea", "user_id": "alice"}
        statuses = [
            (await it.call("POST", "/v1/memory/search", search, headers={"X-API-Key": key})).status
            for key in (ALICE_KEY, ALICE_KEY, BOB_KEY)
        ]
    assert statuses == [200, 429, 200]


async def test_a_replayed_answer_counts_nothing(settings: GatewaySettings) -> None:
    async with limited(settings, requests=1) as gateway:
        answers = [await gateway.post(CHAT, question(), headers={"Idempotency-Key": "k"}) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 200]


async def test_without_redis_requests_are_let_in_and_counted_as_skipped(settings: GatewaySettings) -> None:
    server = RedisServer.start()
    url = type(settings.redis_url)(server.url)
    async with limited(settings.model_copy(update={"redis_url": url}), requests=1) as gateway:
        server.stop()
        assert [(await gateway.chat()).status for _ in range(2)] == [200, 200]
        assert await gateway.metric("rate_limit_skipped_total") == 2
