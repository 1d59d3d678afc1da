"""The engine is killed while it works, or takes requests and says nothing. The gateway goes on all the while."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import MODEL, FakeEngine, Hangs
from tests.gateway.running import Gateway, running_gateway


async def test_every_client_gets_its_documented_answer_and_is_served_when_the_engine_is_back(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    changes = {"model": MODEL, "engine_breaker_failures": 3, "engine_breaker_open_s": 3.0}
    async with running_gateway(settings.model_copy(update=changes)) as gateway:
        engine.will(Hangs(), Hangs("Hel"))
        whole, stream = asyncio.create_task(gateway.chat()), asyncio.create_task(gateway.chat(stream=True))
        await engine.until_running(2)
        await engine.stop()
        lost, cut = await whole, await stream
        assert (lost.status, lost.error["type"], lost.error["code"]) == (503, "upstream_error", "unavailable")
        assert lost.headers["Retry-After"] == "1"
        assert (cut.status, cut.error_event["code"]) == (200, "unavailable")
        assert await gateway.metric('gateway_streams_broken_total{route="/v1/chat/completions"}') == 1

        gone = [await gateway.chat() for _ in range(3)]
        assert {answer.status for answer in gone} == {503}
        assert gone[-1].error["code"] == "engine_circuit_open"
        assert await gateway.metric('upstream_circuit_open{engine="0",model="fake-model"}') == 1
        assert (await gateway.get("/livez")).status == 200
        assert (await gateway.get("/readyz")).json["status"] == "degraded"

        await engine.start()
        await gateway.until_served()
        assert await gateway.metric('upstream_circuit_open{engine="0",model="fake-model"}') == 0
        assert (await gateway.get("/readyz")).json["dependencies"]["engine"] == "ok"


@pytest.fixture
async def gateway(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway that waits for 2 s of silence, and leaves an engine alone after two of them."""
    changes = {
        "model": MODEL,
        "engine_breaker_open_s": 300.0,
        "engine_read_timeout_s": 2.0,
        "engine_breaker_failures": 2,
        "heartbeat_s": 0.1,
    }
    async with running_gateway(settings.model_copy(update=changes)) as running:
        yield running


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_silence_before_the_answer_is_a_504_and_ends_the_engines_request(
    gateway: Gateway, engine: FakeEngine, path: str
) -> None:
    engine.will(Hangs())
    answer = await gateway.post(path, {"model": MODEL, "prompt": "x", "messages": [{"role": "user", "content": "x"}]})
    assert (answer.status, answer.error["type"], answer.error["code"]) == (504, "upstream_error", "timeout")
    assert answer.headers["Retry-After"] == "1"
    await engine.until_running(0)
    assert (engine.aborted, len(engine.received)) == (1, 1)  # and it was not sent again


async def test_silence_in_mid_stream_is_an_error_event_after_heartbeats(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Hangs("Hel"))
    answer = await gateway.chat(stream=True)
    assert (answer.status, answer.streamed_text) == (200, "Hel")
    assert b": keep-alive" in answer.events
    assert answer.error_event["code"] == "timeout"
    await engine.until_running(0)


async def test_an_engine_that_hangs_again_and_again_is_left_alone(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Hangs(), Hangs())
    await asyncio.gather(gateway.chat(), gateway.chat())
    answer = await gateway.chat()
    assert (answer.status, answer.error["code"]) == (503, "engine_circuit_open")
    assert len(engine.received) == 2
