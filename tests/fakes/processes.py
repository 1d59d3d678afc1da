"""Looking at processes from outside, ending them, and waiting for what they do. Standard library only.

A process may end by itself at any moment: whoever ends one here does not have to look first.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
"""How long a test waits for what takes moments on an idle machine."""


def is_running(pid: int) -> bool:
    """Whether the process exists and is more than a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition: Callable[[], bool], what: str, *, timeout_s: float = PATIENCE_S) -> None:
    """Poll until the condition holds. Raises AssertionError, naming what was waited for."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


def pids_in(file: Path) -> list[int]:
    """The pids that a fake wrote, once it has written them."""
    wait_for(lambda: file.is_file() and bool(file.read_text()), f"pids in {file}")
    return [int(pid) for pid in file.read_text().split()]


def kill_pid(pid: int) -> None:
    """``kill -9``; a process that is gone already is left in peace."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill(process: "subprocess.Popen[Any]") -> None:
    """``kill -9`` of a child, and its end."""
    process.kill()
    process.wait()


def end(process: "subprocess.Popen[Any]", *, timeout_s: float = PATIENCE_S) -> int:
    """Send SIGTERM to a child and return its exit status. Kills one that is too slow, and raises TimeoutExpired."""
    process.terminate()
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        kill(process)
        raise


async def signalled(
    process: asyncio.subprocess.Process, number: signal.Signals, *, timeout_s: float = PATIENCE_S
) -> int:
    """Send a signal to a child and return its exit status. Kills one that is too slow, and raises TimeoutError."""
    _send(process, number)
    try:
        async with asyncio.timeout(timeout_s):
            return await process.wait()
    except TimeoutError:
        _send(process, signal.SIGKILL)
        await process.wait()
        raise


def _send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """The process's own way may take its exit status from asyncio, which then says 255."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


async def printed_by(*command: str | Path, cwd: Path, env: Mapping[str, str], timeout_s: float = PATIENCE_S) -> str:
    """What a program without input prints to standard output; it succeeds. Kills one that is too slow."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(timeout_s):
            printed, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, (printed + complaints).decode()
    return printed.decode()


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without any setting of ours, and with some more."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMLOOP_")} | more
