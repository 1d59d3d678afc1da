"""The guard leaves no process behind, however its command, its supervisor or itself ends."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference import guard
from inference.process import ChildProcess, send_signal
from tests.fakes.processes import PATIENCE_S, is_running, kill, kill_pid, pids_in, wait_for

FAMILY = """
import os, pathlib, signal, subprocess, sys, time
runaway = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
part = pathlib.Path(sys.argv[1] + ".part")
part.write_text(f"{os.getpid()} {worker.pid} {runaway.pid}")
part.rename(sys.argv[1])
if "ends" in sys.argv:
    sys.exit(7)
time.sleep(600)
"""


class Family:
    """A guarded command with a worker, and a child that left its process group."""

    def __init__(self, file: Path, *how: str) -> None:
        guarded = [sys.executable, "-I", guard.__file__, "--grace", "0.5", "--"]
        command = [sys.executable, "-c", FAMILY, str(file), *how]
        self.guard = subprocess.Popen([*guarded, *command], stdin=subprocess.PIPE)
        self.pids = pids_in(file)

    def gone(self) -> bool:
        return not any(is_running(pid) for pid in self.pids)

    def end(self) -> None:
        kill(self.guard)
        for pid in filter(is_running, self.pids):
            kill_pid(pid)


@pytest.fixture
def family(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Family]:
    started = Family(tmp_path / "pids", *getattr(request, "param", ()))
    yield started
    started.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_whole_family(family: Family, number: signal.Signals) -> None:
    family.guard.send_signal(number)
    assert family.guard.wait(timeout=PATIENCE_S) == 128 + signal.SIGTERM
    assert family.gone()


def test_signals_that_go_on_to_the_last_moment_do_not_change_the_status(family: Family) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while family.guard.poll() is None and time.monotonic() < deadline:
        family.guard.terminate()
        time.sleep(0.001)
    assert family.guard.returncode == 128 + signal.SIGTERM


def test_the_family_ends_when_the_supervisors_pipe_does(family: Family) -> None:
    assert family.guard.stdin is not None
    family.guard.stdin.close()
    family.guard.wait(timeout=PATIENCE_S)
    assert family.gone()


@pytest.mark.parametrize("family", [("ends",)], indirect=True)
def test_workers_do_not_outlive_a_command_that_ended_and_its_status_is_kept(family: Family) -> None:
    assert family.guard.wait(timeout=PATIENCE_S) == 7
    assert family.gone()


def test_workers_do_not_outlive_a_killed_command(family: Family) -> None:
    os.kill(family.pids[0], signal.SIGKILL)
    assert family.guard.wait(timeout=PATIENCE_S) == 128 + signal.SIGKILL
    assert family.gone()


@pytest.mark.parametrize("family", [("deaf",)], indirect=True)
def test_a_command_that_is_deaf_to_sigterm_is_killed_after_the_grace(family: Family) -> None:
    began = time.monotonic()
    family.guard.terminate()
    assert family.guard.wait(timeout=PATIENCE_S) == 128 + signal.SIGKILL
    assert time.monotonic() - began >= 0.5
    assert family.gone()


def test_a_killed_guard_takes_its_command_with_it(family: Family) -> None:
    family.guard.kill()
    wait_for(lambda: not is_running(family.pids[0]), "the command's end")


def test_a_command_that_does_not_exist_gives_the_shells_status() -> None:
    started = subprocess.run(
        [sys.executable, "-I", guard.__file__, "--", "/no/such/command"], capture_output=True, text=True, check=False
    )
    assert started.returncode == 127
    assert "cannot start /no/such/command" in started.stderr


def printing(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_every_line_is_streamed_and_the_last_ones_are_kept() -> None:
    lines: list[str] = []
    child = await ChildProcess.start(printing("for n in range(100): print('line', n)"), on_line=lines.append)
    assert await child.wait() == 0
    assert lines == [f"line {number}" for number in range(100)]
    assert child.last_words(2) == "line 98\nline 99"


async def test_a_log_that_cannot_be_written_does_not_stop_the_child() -> None:
    lines: list[str] = []

    def write(line: str) -> None:
        lines.append(line)
        if line == "line 3":
            raise OSError(28, "No space left on device")

    child = await ChildProcess.start(printing("for n in range(100): print('line', n)"), on_line=write)
    assert await child.wait() == 0
    assert lines[-1] == "line 99"


async def test_output_that_is_no_text_or_has_no_line_ends_does_not_stop_the_stream() -> None:
    lines: list[str] = []
    code = "import sys; sys.stdout.buffer.write(b'\\xff' * 3_000_000 + b'\\nend')"
    child = await ChildProcess.start(printing(code), on_line=lines.append)
    assert await child.wait() == 0
    assert lines[-1] == "end"


async def test_stopping_a_child_that_is_already_gone_gives_its_status() -> None:
    child = await ChildProcess.start(printing("raise SystemExit(4)"), on_line=lambda _: None)
    await child.wait()
    assert await child.stop() == 4


async def test_stopping_twice_at_once_is_harmless() -> None:
    running = asyncio.Event()
    code = "import time; print('running', flush=True); time.sleep(600)"
    child = await ChildProcess.start(printing(code), on_line=lambda _: running.set(), grace_s=1.0)
    await running.wait()
    assert await asyncio.gather(child.stop(), child.stop()) == [143, 143]


async def test_a_process_that_ends_while_it_gets_signals_keeps_its_exit_status() -> None:
    for _ in range(20):
        process = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
        while process.returncode is None:
            send_signal(process, signal.SIGCONT)
            await asyncio.sleep(0)
        assert process.returncode == 7
