"""``MEMLOOP_PROCESSES``: several processes of the API on one port."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, is_running, kill_pid
from tests.fakes.sibling_processes import Steady, siblings
from tests.gateway.rig import eventually


@pytest.fixture
def environment(settings: GatewaySettings) -> dict[str, str]:
    return {
        "MEMLOOP_REDIS_URL": settings.redis_url.get_secret_value(),
        "MEMLOOP_STORE_URL": settings.store_url,
        "MEMLOOP_ENGINE_URL": settings.engine_url,
    }


def sockets_of(pid: int) -> int:
    """How many sockets the process has. A descriptor may go while they are counted."""
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += descriptor.readlink().name.startswith("socket:")
    return found


async def test_counters_are_those_of_both_processes_which_end_when_their_parent_is_killed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with siblings("gateway.main", tmp_path, environment) as gateway:
        answers = [await gateway.get("/v1/models") for _ in range(30)]
        assert {status for status, _ in answers} == {200}
        (count,) = await gateway.samples('gateway_request_seconds_count{code="200",route="/v1/models"}')
        assert count.endswith(" 30.0")
        assert len(await gateway.samples("process_resident_memory_bytes{")) == 2
        pids = gateway.pids
        await gateway.program.kill()
        await eventually(lambda: not any(is_running(pid) for pid in pids))


async def test_connections_are_spread_over_the_processes(environment: dict[str, str], tmp_path: Path) -> None:
    async with siblings("gateway.main", tmp_path, environment) as gateway:
        before = [sockets_of(pid) for pid in gateway.pids]
        opened = [await asyncio.open_connection("127.0.0.1", gateway.program.port) for _ in range(64)]
        await eventually(lambda: sum(map(sockets_of, gateway.pids)) >= sum(before) + 50)
        taken = [sockets_of(pid) - held for pid, held in zip(gateway.pids, before, strict=True)]
        assert min(taken) >= 10  # of two fair coins, once in 10^9 runs
        for _, writer in opened:
            writer.close()


async def test_a_port_that_another_server_has_is_refused(environment: dict[str, str], tmp_path: Path) -> None:
    async with siblings("gateway.main", tmp_path, environment) as gateway:
        settings = {**environment, "MEMLOOP_PROCESSES": "2", "MEMLOOP_PORT": str(gateway.program.port)}
        second = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway.main", env=clean_environment(**settings), stderr=PIPE
        )
        _, words = await second.communicate()
        assert second.returncode == 1
        assert b"cannot listen on" in words


async def test_a_process_that_dies_is_replaced_and_a_signal_stops_all_of_them(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with siblings("gateway.main", tmp_path, environment) as gateway:
        before = gateway.pids
        kill_pid(before[0])
        await eventually(lambda: len(gateway.pids) == 2 and before[0] not in gateway.pids)
        await gateway.all_started()
        assert {(await gateway.get("/livez"))[0] for _ in range(10)} == {200}
        pids = gateway.pids
        gateway.program.process.send_signal(signal.SIGTERM)
        assert await gateway.program.process.wait() == 0
        assert not any(is_running(pid) for pid in pids)


async def test_a_sighup_replaces_them_one_by_one_and_no_request_fails(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with siblings("gateway.main", tmp_path, environment) as gateway:
        load, before = Steady(f"{gateway.program.url}/readyz"), gateway.pids
        async with load.asking(4):
            gateway.hang_up()
            await gateway.all_new(before)
        assert load.failures == []


@pytest.mark.slow
async def test_a_process_that_cannot_start_anew_leaves_the_old_ones_in_place(
    environment: dict[str, str], settings: GatewaySettings, tmp_path: Path
) -> None:
    models = tmp_path / "models.toml"
    models.write_text(f'[models.m]\nengine_url = "{settings.engine_url}"')
    async with siblings("gateway.main", tmp_path, {**environment, "MEMLOOP_MODELS": str(models)}) as gateway:
        before = gateway.pids
        models.write_text('[models.m]\nengine_url = "/v1"')
        gateway.hang_up()
        await eventually(lambda: "did not become ready" in gateway.program.log.read_text(), timeout_s=120)
        assert gateway.pids == before
        assert {(await gateway.get("/readyz"))[0] for _ in range(10)} == {200}


async def test_processes_that_cannot_start_end_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[models.m]\nengine_url = "/v1"')
    settings = {"MEMLOOP_MODELS": str(file), "MEMLOOP_PROCESSES": "2", "MEMLOOP_PORT": str(free_port())}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway.main", env=clean_environment(**settings), stderr=PIPE
    )
    _, words = await process.communicate()
    assert process.returncode == 1
    assert b"is not an absolute http://, https://, http+srv:// or https+srv:// URL" in words


def test_each_process_has_its_part_of_the_limits() -> None:
    whole = GatewaySettings.model_validate({"processes": 2, "max_active_requests": 101, "max_body_bytes": 2**29})
    part = whole.of_one_process()
    assert (part.max_active_requests, part.max_batch_requests, part.max_followers) == (51, 32, 512)
    assert part.max_active_bytes == 2**29
