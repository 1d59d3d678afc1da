"""Clients that leave in the middle, on real vLLM: the engine stops their requests within two seconds."""

import asyncio
import re
import time

import pytest

from gateway.settings import GatewaySettings
from tests.contract.conftest import TinyEngine
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, Gateway, running_gateway

pytestmark = pytest.mark.engine
_CLIENTS = 16  # as many as run at once: a step of the engine then takes long enough to leave in its middle
_TOKENS_EACH = 1800
_GONE_WITHIN_S = 2.0
_TRIES = 3  # whatever else runs on the machine only ever adds time


async def gauge(gateway: Gateway, engine: TinyEngine, name: str) -> float:
    """The sum of a metric's samples on the engine's own page."""
    async with gateway.http.get(engine.openai_url.removesuffix("/v1") + "/metrics") as response:
        page = await response.text()
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)}(?:,[^}}]*)?}} (\S+)$", page, re.MULTILINE))


RUNNING = 'vllm:num_requests_running{engine="0"'
WRITTEN = 'vllm:generation_tokens_total{engine="0"'


async def begun(gateway: Gateway, engine: TinyEngine) -> None:
    """Return when the engine works on all requests."""

    async def all_running() -> bool:
        return await gauge(gateway, engine, RUNNING) == _CLIENTS

    await eventually(all_running)


async def seconds_until_idle(gateway: Gateway, engine: TinyEngine) -> float:
    """How long the engine still had requests running."""
    began = time.monotonic()

    async def idle() -> bool:
        return await gauge(gateway, engine, RUNNING) == 0

    await eventually(idle)
    return time.monotonic() - began


async def ask(gateway: Gateway, engine: TinyEngine, *, stream: bool) -> None:
    """One client with an endless question, who reads all that comes."""
    body = {
        "model": engine.model,
        "messages": [{"role": "user", "content": "Tell me a story."}],
        "max_tokens": _TOKENS_EACH,
        "ignore_eos": True,
        "stream": stream,
    }
    async with gateway.http.post(gateway.url + CHAT, json=body) as response:
        assert response.status == 200
        await response.read()


@pytest.mark.parametrize("stream", [True, False], ids=["in mid-stream", "in mid-JSON"])
async def test_the_engine_stops_within_two_seconds_when_its_clients_leave(
    tiny_engine: TinyEngine, redis_url: str, stream: bool
) -> None:
    settings = {"engine_url": tiny_engine.openai_url, "redis_url": redis_url, "model": tiny_engine.model}
    async with running_gateway(GatewaySettings.model_validate(settings)) as gateway:
        waits_s: list[float] = []
        while len(waits_s) < _TRIES and min(waits_s, default=_GONE_WITHIN_S) >= _GONE_WITHIN_S:
            waits_s.append(await seconds_after_leaving(gateway, tiny_engine, stream=stream))
        assert min(waits_s) < _GONE_WITHIN_S, waits_s

        async def all_counted() -> bool:
            return await gateway.metric("upstream_abort_total") == len(waits_s) * _CLIENTS

        await eventually(all_counted)


async def seconds_after_leaving(gateway: Gateway, engine: TinyEngine, *, stream: bool) -> float:
    """How long the engine works on when all its clients have left."""
    before = await gauge(gateway, engine, WRITTEN)
    clients = [asyncio.create_task(ask(gateway, engine, stream=stream)) for _ in range(_CLIENTS)]
    await begun(gateway, engine)
    for client in clients:
        client.cancel()
    waited_s = await seconds_until_idle(gateway, engine)
    ends = await asyncio.gather(*clients, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * _CLIENTS
    written = await gauge(gateway, engine, WRITTEN) - before
    assert written < _CLIENTS * _TOKENS_EACH / 2  # stopped, not done
    return waited_s
