"""Clients that leave in the middle, on real vLLM: the engine stops their requests within two seconds."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from gateway.settings import GatewaySettings
from tests.contract.conftest import TinyEngine
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, Gateway, running_gateway

pytestmark = [pytest.mark.engine, pytest.mark.alone]
_AT_ONCE = 16
_CLIENTS = 64  # most of them wait for the engine, so that it has work for long enough to leave in its middle
_ROUNDS = 5  # at most: on few cores a process may stand still for seconds while the engine works
_TOKENS_EACH = 1800
_GONE_WITHIN_S = 2.0


async def gauge(gateway: Gateway, engine: TinyEngine, name: str) -> float:
    """The sum of a metric's samples on the engine's own page."""
    async with gateway.http.get(engine.openai_url.removesuffix("/v1") + "/metrics") as response:
        page = await response.text()
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)}(?:,[^}}]*)?}} (\S+)$", page, re.MULTILINE))


RUNNING = 'vllm:num_requests_running{engine="0"'
WRITTEN = 'vllm:generation_tokens_total{engine="0"'


async def begun(gateway: Gateway, engine: TinyEngine, clients: Sequence["asyncio.Task[None]"]) -> None:
    """Return when the engine works on as many requests as it takes at once. Raises what a client failed of."""

    async def all_running() -> bool:
        for client in clients:
            if client.done():
                client.result()
        return await gauge(gateway, engine, RUNNING) >= _AT_ONCE

    await eventually(all_running, timeout_s=60)


async def seconds_until_idle(gateway: Gateway, engine: TinyEngine) -> float:
    """How long the engine still had requests running."""
    began = time.monotonic()

    async def idle() -> bool:
        return await gauge(gateway, engine, RUNNING) == 0

    await eventually(idle, timeout_s=60)
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


@dataclass(frozen=True, slots=True)
class Round:
    """Clients that left: how many, how long the engine went on, and the tokens that it wrote for them in all."""

    left: int
    idle_after_s: float
    written: float

    @property
    def was_stopped(self) -> bool:
        """Whether the engine stopped in time, in the middle of its work."""
        return self.idle_after_s < _GONE_WITHIN_S and self.written < _CLIENTS * _TOKENS_EACH / 2


async def asked_and_left(gateway: Gateway, engine: TinyEngine, *, stream: bool) -> Round:
    """One round of clients."""
    before = await gauge(gateway, engine, WRITTEN)
    clients = [asyncio.create_task(ask(gateway, engine, stream=stream)) for _ in range(_CLIENTS)]
    await begun(gateway, engine, clients)
    leaving = [client for client in clients if client.cancel()]
    idle_after_s = await seconds_until_idle(gateway, engine)
    ends = await asyncio.gather(*leaving, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * len(leaving)
    return Round(len(leaving), idle_after_s, await gauge(gateway, engine, WRITTEN) - before)


@pytest.mark.parametrize("stream", [True, False], ids=["in mid-stream", "in mid-JSON"])
async def test_the_engine_stops_within_two_seconds_when_its_clients_leave(
    tiny_engine: TinyEngine, redis_url: str, stream: bool
) -> None:
    settings = {"engine_url": tiny_engine.openai_url, "redis_url": redis_url, "model": tiny_engine.model}
    async with running_gateway(GatewaySettings.model_validate(settings)) as gateway:
        rounds: list[Round] = []
        while len(rounds) < _ROUNDS and not any(each.was_stopped for each in rounds):
            rounds.append(await asked_and_left(gateway, tiny_engine, stream=stream))
        assert any(each.was_stopped for each in rounds), rounds

        async def all_counted() -> bool:
            return await gateway.metric("upstream_abort_total") == sum(each.left for each in rounds)

        await eventually(all_counted)
