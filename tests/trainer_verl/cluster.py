"""A Ray cluster of one machine, with a GPU that is none, for runs that join it."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.fakes.ports import free_port
from tests.fakes.processes import end

RAY = Path(sys.executable).parent / "ray"
_AGENTS = ("dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")
"""Ray gives these processes 15 seconds to find ports of their own, too few where more work runs beside."""
_RAYS_OWN = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""The cluster's own processes, without which its node dies."""
_START_TIMEOUT_S = 400


@dataclass(frozen=True)
class Cluster:
    """``environment`` of a run that joins it: its address and its token. ``dashboard`` takes jobs."""

    head: "subprocess.Popen[bytes]"
    dashboard: str
    environment: dict[str, str]

    def workers(self) -> list[psutil.Process]:
        """The processes of all runs: trainers, engines, rollout workers, queues."""
        found = psutil.Process(self.head.pid).children(recursive=True)
        named = [(each, _command(each)) for each in found]
        return [each for each, name in named if name.startswith("ray::") and name not in _RAYS_OWN]


@contextmanager
def cluster() -> Generator[Cluster]:
    """The cluster, once it takes runs.

    Ray's sockets want a short path, and a folder of its own keeps other runs here from finding it.
    """
    folder, port, dashboard = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp")), free_port(), free_port()
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0"}
    lean = {
        "RAY_raylet_start_wait_time_s": "400",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_worker_niceness": "0",  # 15 by default: on a busy machine a run then hardly starts
    }
    start = [RAY, "start", "--head", "--num-cpus=32", "--num-gpus=1", f"--port={port}", f"--temp-dir={folder}"]
    agents = [f"--{name}-port={free_port()}" for name in _AGENTS]
    words = folder / "head.txt"
    with words.open("wb") as output:
        head = subprocess.Popen(
            [*start, *agents, "--block", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}"],
            env={**os.environ, **token, **lean},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(head, words)
        yield Cluster(head, f"http://127.0.0.1:{dashboard}", {**token, "RAY_ADDRESS": f"127.0.0.1:{port}"})
    finally:
        end(head, timeout_s=400)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(head: "subprocess.Popen[bytes]", words: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while b"Ray runtime started" not in words.read_bytes():
        if head.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Ray did not start: {words.read_text('utf-8', 'replace')[-4000:]}")
        time.sleep(0.2)


def _command(process: psutil.Process) -> str:
    try:
        return (process.cmdline() or [""])[0]
    except psutil.Error:
        return ""
