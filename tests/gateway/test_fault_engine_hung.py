"""The engine takes requests and says nothing, before its answer or in the middle of one."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import MODEL, FakeEngine, Hangs
from tests.gateway.running import Gateway, running_gateway


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
