"""Signals to child processes: each gets those that it was sent, and its exit status is its own."""

import asyncio
import signal
import sys
from pathlib import Path

from memloop_service.children import send_signal
from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, signalled
from tests.gateway.rig import eventually
from tests.memloop_service.sibling_that_counts import LOG, MODULE


async def test_a_process_that_ends_while_it_gets_signals_keeps_its_exit_status() -> None:
    for _ in range(20):
        process = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
        while process.returncode is None:
            send_signal(process, signal.SIGCONT)
            await asyncio.sleep(0)
        assert process.returncode == 7


async def test_the_end_of_one_process_sends_no_second_signal_to_another_that_drains(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    settings = {LOG: str(log), "MEMLOOP_PORT": str(free_port())}
    parent = await asyncio.create_subprocess_exec(sys.executable, "-m", MODULE, env=clean_environment(**settings))
    await eventually(lambda: log.read_text().count("runs") == 2)
    assert await signalled(parent, signal.SIGTERM) == 0
    assert sorted(log.read_text().splitlines()) == ["0 runs", "0 told", "1 runs", "1 told"]
