"""Runs the tiny model on vLLM for CPUs, started by our launcher on free ports, during a benchmark."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager

from benchmarks.mock_engine import free_port
from benchmarks.started import log_of, started

MODEL = "memloop-tiny"
_START_S = 300.0
_NAME = "engine"


@contextmanager
def tiny_engine(**settings: str) -> Generator[str]:
    """Start an engine with these variables and yield its base URL. Raises TimeoutError after five minutes."""
    port, engine_port = free_port(), free_port()
    ours = {"MEMLOOP_PORT": str(port), "MEMLOOP_ENGINE_PORT": str(engine_port), "MEMLOOP_MODEL": MODEL}
    with started(_NAME, (sys.executable, "-m", "inference.main"), ours | settings) as process:
        _wait_until_ready(f"http://127.0.0.1:{port}/readyz", process)
        yield f"http://127.0.0.1:{engine_port}/v1"


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise TimeoutError(f"the engine did not start; see {log_of(_NAME)}")
