"""One real engine per session: the launcher with the shipped tiny model on vLLM for CPUs.

Tests that take ``tiny_engine`` must carry the mark ``engine``.
"""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, end, wait_for

_START_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class TinyEngine:
    """Where the launcher and the engine answer. ``openai_url`` ends in ``/v1``."""

    launcher_url: str
    openai_url: str
    model: str
    launcher_pid: int
    log: Path


@pytest.fixture(scope="session")
def tiny_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyEngine]:
    port, engine_port = free_port(), free_port()
    ports = {"MEMLOOP_PORT": str(port), "MEMLOOP_ENGINE_PORT": str(engine_port)}
    environment = clean_environment(MEMLOOP_MODEL="memloop-tiny", **ports)
    log = tmp_path_factory.mktemp("engine") / "launcher.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "inference.main"]
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: _is_ready(url) or process.poll() is not None, "the engine", timeout_s=_START_TIMEOUT_S)
        assert process.poll() is None, log.read_text(errors="replace")[-4000:]
        yield TinyEngine(url, f"http://127.0.0.1:{engine_port}/v1", "memloop-tiny", process.pid, log)
    finally:
        end(process)


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5):
            return True
    except OSError:
        return False
