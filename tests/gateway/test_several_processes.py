"""``MEMLOOP_PROCESSES``: several processes of the API on one port."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from gateway.settings import GatewaySettings
from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, is_running, kill_pid
from tests.fakes.service_process import ServiceProcess, started
from tests.gateway.rig import eventually

START_S = 120.0


@asynccontextmanager
async def two_processes(settings: GatewaySettings, folder: Path) -> AsyncGenerator[ServiceProcess]:
    environment = {
        "MEMLOOP_REDIS_URL": settings.redis_url.get_secret_value(),
        "MEMLOOP_STORE_URL": settings.store_url,
        "MEMLOOP_ENGINE_URL": settings.engine_url,
        "MEMLOOP_PROCESSES": "2",
    }
    async with started("gateway.main", folder, environment) as gateway:
        await eventually(lambda: both_started(gateway), timeout_s=START_S)
        yield gateway


async def get(gateway: ServiceProcess, path: str) -> tuple[int, str]:
    """An answer over a connection of its own."""
    async with aiohttp.ClientSession() as http, http.get(gateway.url + path) as answer:
        return answer.status, await answer.text()


async def samples(gateway: ServiceProcess, name: str) -> list[str]:
    return [line for line in (await get(gateway, "/metrics"))[1].splitlines() if line.startswith(name)]


async def both_started(gateway: ServiceProcess) -> bool:
    with suppress(aiohttp.ClientError):
        return len(await samples(gateway, "memloop_build_info{")) == 2
    return False


def children(gateway: ServiceProcess) -> list[int]:
    pid = gateway.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_counters_are_those_of_both_processes(settings: GatewaySettings, tmp_path: Path) -> None:
    async with two_processes(settings, tmp_path) as gateway:
        answers = [await get(gateway, "/v1/models") for _ in range(30)]
        assert {status for status, _ in answers} == {200}
        (count,) = await samples(gateway, 'gateway_request_seconds_count{code="200",route="/v1/models"}')
        assert count.endswith(" 30.0")
        assert len(await samples(gateway, "process_resident_memory_bytes{")) == 2


async def test_a_process_that_dies_is_replaced_and_a_signal_stops_all_of_them(
    settings: GatewaySettings, tmp_path: Path
) -> None:
    async with two_processes(settings, tmp_path) as gateway:
        before = children(gateway)
        kill_pid(before[0])
        await eventually(lambda: len(children(gateway)) == 2 and before[0] not in children(gateway))
        await eventually(lambda: both_started(gateway), timeout_s=START_S)
        assert {(await get(gateway, "/livez"))[0] for _ in range(10)} == {200}
        pids = children(gateway)
        gateway.process.send_signal(signal.SIGTERM)
        assert await gateway.process.wait() == 0
        assert not any(is_running(pid) for pid in pids)


async def test_they_end_when_their_parent_is_killed(settings: GatewaySettings, tmp_path: Path) -> None:
    async with two_processes(settings, tmp_path) as gateway:
        pids = children(gateway)
        await gateway.kill()
        await eventually(lambda: not any(is_running(pid) for pid in pids))


async def test_processes_that_cannot_start_end_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[models.m]\nengine_url = "/v1"')
    settings = {"MEMLOOP_MODELS": str(file), "MEMLOOP_PROCESSES": "2", "MEMLOOP_PORT": str(free_port())}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway.main", env=clean_environment(**settings), stderr=PIPE
    )
    _, words = await process.communicate()
    assert process.returncode == 1
    assert b"is not an absolute http:// or https:// URL" in words


def test_each_process_has_its_part_of_the_limits() -> None:
    whole = GatewaySettings.model_validate({"processes": 2, "max_active_requests": 101, "max_body_bytes": 2**29})
    part = whole.of_one_process()
    assert (part.max_active_requests, part.max_batch_requests, part.max_followers) == (51, 32, 512)
    assert part.max_active_bytes == 2**29
