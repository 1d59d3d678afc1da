"""Looking at processes from outside, and waiting for what they do."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def is_running(pid: int) -> bool:
    """Whether the process exists and is more than a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition: Callable[[], bool], what: str, *, timeout_s: float = 60.0) -> None:
    """Poll until the condition holds. Raises AssertionError, naming what was waited for."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


def pids_in(file: Path) -> list[int]:
    """The pids that a fake wrote, once it has written them."""
    wait_for(lambda: file.is_file() and bool(file.read_text()), f"pids in {file}")
    return [int(pid) for pid in file.read_text().split()]


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without any setting of ours, and with some more."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMLOOP_")} | more
