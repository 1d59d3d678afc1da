"""Components start in order and end together."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memloop_cli.errors import CliError
from memloop_cli.stack.component import Component, http_probe, redis_probe
from memloop_cli.stack.running import Ready, running_stack
from tests.fakes import component_process
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S, is_running, kill, kill_pid, wait_for

Make = Callable[..., Component]


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    return tmp_path / "diary"


@pytest.fixture
def component(diary: Path) -> Make:
    def make(name: str, *how: str, timeout_s: float = PATIENCE_S) -> Component:
        port = free_port()
        command = (sys.executable, component_process.__file__, name, str(port), str(diary), *how)
        return Component(
            name, f"the {name}", command, dict(os.environ), port, http_probe(port), timeout_s, grace_s=20.0
        )

    return make


def entries(diary: Path) -> list[str]:
    return [line.rpartition(" ")[0] for line in diary.read_text().splitlines()]


def pid_of(diary: Path, name: str) -> int:
    (line,) = (line for line in diary.read_text().splitlines() if line.startswith(f"start {name} "))
    return int(line.split()[-1])


async def test_a_stage_starts_only_when_the_one_before_it_is_ready(
    component: Make, diary: Path, tmp_path: Path
) -> None:
    told: list[Ready] = []
    stages = ((component("redis", "slow"),), (component("store", "slow"), component("engine")), (component("api"),))
    async with running_stack(stages, logs=tmp_path / "logs", report=told.append):
        happened = entries(diary)
    assert happened.index("serve redis") < happened.index("start store")
    assert max(happened.index("serve store"), happened.index("serve engine")) < happened.index("start api")
    names = [ready.component.name for ready in told]
    assert (names[0], set(names[1:3]), names[3]) == ("redis", {"store", "engine"}, "api")


async def test_all_are_stopped_in_the_opposite_order(component: Make, diary: Path, tmp_path: Path) -> None:
    stages = ((component("redis"),), (component("store"),), (component("api"),))
    async with running_stack(stages, logs=tmp_path / "logs", report=lambda _: None):
        pass
    assert entries(diary)[-3:] == ["stop api", "stop store", "stop redis"]


async def test_every_component_has_its_log(component: Make, tmp_path: Path) -> None:
    async with running_stack(((component("store"),),), logs=tmp_path / "logs", report=lambda _: None):
        assert (tmp_path / "logs" / "store.log").read_text() == "store says hello\n"


async def test_a_component_that_dies_at_its_start_is_reported_with_its_last_output(
    component: Make, diary: Path, tmp_path: Path
) -> None:
    stages = ((component("redis"), component("engine")), (component("store", "dies"),))
    with pytest.raises(CliError) as failure:
        async with running_stack(stages, logs=tmp_path / "logs", report=lambda _: None):
            pytest.fail("it is not ready")
    assert failure.value.message.startswith("store died with status 5")
    assert "KeyError: 'no configuration'" in failure.value.detail
    assert {"stop redis", "stop engine"} <= set(entries(diary))


async def test_a_component_that_dies_in_service_ends_the_stack(component: Make, diary: Path, tmp_path: Path) -> None:
    stages = ((component("redis"),), (component("api"),))
    async with running_stack(stages, logs=tmp_path / "logs", report=lambda _: None) as stack:
        kill_pid(pid_of(diary, "redis"))
        with pytest.raises(CliError, match="redis died with status 137"):
            await asyncio.wait_for(stack.unless_one_dies(asyncio.Event().wait()), timeout=PATIENCE_S)
    assert "stop api" in entries(diary)


async def test_work_that_ends_gives_its_result(component: Make, tmp_path: Path) -> None:
    async with running_stack(((component("api"),),), logs=tmp_path / "logs", report=lambda _: None) as stack:
        assert await stack.unless_one_dies(asyncio.sleep(0, "done")) == "done"


async def test_a_component_that_is_never_ready_is_given_up_with_its_answer(component: Make, tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"api was not ready within 4 s: waiting"):
        async with running_stack(
            ((component("api", "never-ready", timeout_s=4.0),),), logs=tmp_path / "logs", report=lambda _: None
        ):
            pytest.fail("it is not ready")


async def test_a_cancelled_stack_stops_everything(component: Make, diary: Path, tmp_path: Path) -> None:
    ready = asyncio.Event()

    async def run() -> None:
        stages = ((component("api"),),)
        async with running_stack(stages, logs=tmp_path / "logs", report=lambda _: ready.set()) as stack:
            await stack.unless_one_dies(asyncio.Event().wait())

    task = asyncio.create_task(run())
    await asyncio.wait_for(ready.wait(), timeout=PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(pid_of(diary, "api"))


def test_components_die_with_a_killed_stack(diary: Path, tmp_path: Path) -> None:
    port = free_port()
    command = (sys.executable, component_process.__file__, "api", str(port), str(diary))
    program = f"""
import asyncio, os
from pathlib import Path
from memloop_cli.stack.component import Component, http_probe
from memloop_cli.stack.running import running_stack
part = Component("api", "", {command!r}, dict(os.environ), {port}, http_probe({port}), {PATIENCE_S})
async def main():
    async with running_stack(((part,),), logs=Path({str(tmp_path)!r}), report=print):
        await asyncio.Event().wait()
asyncio.run(main())
"""
    stack = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
    wait_for(lambda: diary.is_file() and "serve api" in entries(diary), "the component")
    kill(stack)
    wait_for(lambda: not is_running(pid_of(diary, "api")), "the component's end")


async def test_redis_is_ready_when_it_answers_a_ping(redis_url: str) -> None:
    port = int(redis_url.rpartition(":")[2].split("/")[0])
    assert await redis_probe(port)() is None
    assert await redis_probe(free_port())() is not None
