"""The engine is killed while it works, stays away, and comes back. The gateway goes on all the while."""

import asyncio

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import MODEL, FakeEngine, Hangs
from tests.gateway.running import running_gateway


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
