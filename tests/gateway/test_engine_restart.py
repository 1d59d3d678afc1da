"""The engine is killed under the gateway, its launcher ends, and a new one starts in its place."""

import asyncio

from gateway.settings import GatewaySettings
from tests.fakes.processes import kill_pid, pids_in
from tests.gateway.running import running_gateway
from tests.inference.conftest import checkpoint, start
from tests.inference.launcher_process import Start

__all__ = ["checkpoint", "start"]


async def test_the_gateway_serves_again_after_the_launcher_restarts(settings: GatewaySettings, start: Start) -> None:
    first = start()
    await asyncio.to_thread(first.wait_until, "/readyz", 200)
    changes = {"engine_url": first.engine_url, "engine_breaker_failures": 2, "engine_breaker_open_s": 0.2}
    async with running_gateway(settings.model_copy(update=changes)) as gateway:
        assert (await gateway.chat()).status == 200
        kill_pid(pids_in(first.pids_file)[0])
        assert (await asyncio.to_thread(first.ended))[0] == 1
        assert (await gateway.chat()).status == 503
        assert (await gateway.get("/readyz")).json["status"] == "degraded"
        second = start(ports=(first.port, first.engine_port))
        await asyncio.to_thread(second.wait_until, "/readyz", 200)
        await gateway.until_served()
        assert (await gateway.get("/readyz")).json["status"] == "ok"
