"""Runs one process of a benchmark, which ends with the benchmark."""

import os
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOGS: Final = Path(".memloop")
_STOP_S: Final = 60.0


@contextmanager
def started(name: str, command: Sequence[str], settings: Mapping[str, str]) -> "Generator[subprocess.Popen[bytes]]":
    """Start a command with these variables added, and stop it on exit; ``log_of`` names the file of its output."""
    end_as_on_ctrl_c()
    _LOGS.mkdir(exist_ok=True)
    with log_of(name).open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_STOP_S)


def log_of(name: str) -> Path:
    """Return the file with the output of a process of that name."""
    return _LOGS / f"benchmark-{name}.log"


def end_as_on_ctrl_c() -> None:
    """Let SIGTERM raise KeyboardInterrupt: a terminated benchmark then stops its processes."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
