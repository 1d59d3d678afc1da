"""A gateway without any engine serves memory, and its readiness names what is missing."""

from collections.abc import AsyncGenerator

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.job_store import store_server
from tests.fakes.launcher import Launcher, launched
from tests.fakes.ports import free_port
from tests.fakes.streaming_engine import FakeEngine
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway, running_gateway

USER = {"user_id": "u1"}


@pytest.fixture
async def settings(settings: GatewaySettings) -> AsyncGenerator[GatewaySettings]:
    """The settings with a store that has all routes of memory."""
    async with store_server() as store:
        yield settings.model_copy(update={"store_url": store.url})


async def serves_memory(gateway: Gateway) -> None:
    searched = await gateway.post("/v1/memory/search", {"query": "Where?", **USER})
    listed = await gateway.get("/v1/memory?user_id=u1")
    async with gateway.http.delete(f"{gateway.url}/v1/memory?user_id=u1") as erased:
        assert (searched.status, listed.status, erased.status) == (200, 200, 200)


async def metrics_of(gateway: Gateway) -> str:
    async with gateway.http.get(f"{gateway.url}/metrics") as answer:
        return await answer.text()


async def test_requests_for_an_absent_model_are_counted_from_zero(settings: GatewaySettings) -> None:
    away = settings.model_copy(update={"inference_url": f"http://127.0.0.1:{free_port()}"})
    async with running_gateway(away) as gateway:
        await serves_memory(gateway)
        assert 'upstream_absent_total{model=""} 0.0' in await metrics_of(gateway)


async def test_a_gateway_that_starts_while_no_engine_is_up_serves_memory(settings: GatewaySettings) -> None:
    port = free_port()
    away = settings.model_copy(update={"inference_url": f"http://127.0.0.1:{port}"})
    async with running_gateway(away) as gateway:
        await serves_memory(gateway)
        ready = await gateway.get("/readyz")
        assert (ready.status, ready.json["status"]) == (200, "degraded")
        assert ready.json["dependencies"]["engine"] == "the inference launcher cannot be reached"
        refused = await gateway.chat()
        assert (refused.status, refused.error["code"], refused.headers["Retry-After"]) == (503, "model_not_ready", "5")
        assert (await gateway.get("/v1/models")).status == 503
        assert 'upstream_absent_total{model=""} 2.0' in await metrics_of(gateway)
        async with launched(Launcher(), port=port):
            await gateway.until_served()
        ready = await gateway.get("/readyz")
        assert (ready.json["status"], "warnings" in ready.json) == ("ok", False)


async def test_a_gateway_whose_engine_goes_away_serves_memory(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with running_gateway(settings) as gateway:
        await engine.stop()
        await serves_memory(gateway)
        ready = await gateway.get("/readyz")
        assert (ready.status, ready.json["status"]) == (200, "degraded")
        assert ready.json["dependencies"] == {"redis": "ok", "store": "ok", "engine": "the engine cannot be reached"}


async def test_a_gateway_that_has_just_started_is_not_ready_without_a_model(settings: GatewaySettings) -> None:
    changes = {"inference_url": f"http://127.0.0.1:{free_port()}", "startup_wait_s": 600.0}
    async with running_gateway(settings.model_copy(update=changes)) as gateway:
        await serves_memory(gateway)
        ready = await gateway.get("/readyz")
        assert (ready.status, ready.json["status"]) == (503, "unavailable")
        assert ready.json["dependencies"]["engine"] == "the inference launcher cannot be reached"


async def test_failed_lookups_of_an_engines_name_are_counted(settings: GatewaySettings) -> None:
    async with running_gateway(settings.model_copy(update={"engine_url": "http://engine.invalid:8000/v1"})) as gateway:
        assert (await gateway.chat()).status == 503

        async def counted() -> bool:
            return await gateway.metric('upstream_unresolved_total{model=""}') > 0

        await eventually(counted)
