"""Runs Redis, the API and a worker as processes and measures their memory and CPU."""

import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mock_engine import free_port, wait_for
from benchmarks.started import log_of, started
from memloop_cli.stack.redis import find_redis, redis_command

TOKENIZER = Path("services/inference/models/memloop-tiny/tokenizer.json")
_START_S = 120.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack: the API's URL, and the process IDs."""

    url: str
    gateway: int
    worker: int

    @property
    def peak_mb(self) -> dict[str, float]:
        """Return each process's peak memory so far (VmHWM), in MB."""
        return {"gateway": _peak_mb(self.gateway), "worker": _peak_mb(self.worker)}

    @property
    def cpu_s(self) -> dict[str, float]:
        """Return each process's CPU seconds so far."""
        return {"gateway": _cpu_s(self.gateway), "worker": _cpu_s(self.worker)}


@contextmanager
def running_stack(engine_url: str, *, model: str, profile: str, reads_at_once: int = 4) -> Generator[Stack]:
    """Start a stack without a memory store, which reads do not need. Its logs are in ``.memloop/``."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memloop-bench-")))
        ports = {name: free_port() for name in ("redis", "gateway", "worker")}
        redis = redis_command(find_redis(), port=ports["redis"], folder=folder)
        stack.enter_context(started("redis", redis, {}))
        wait_for(ports["redis"])
        settings = {
            "MEMLOOP_REDIS_URL": f"redis://127.0.0.1:{ports['redis']}/0",
            "MEMLOOP_ENGINE_URL": engine_url,
            "MEMLOOP_MODEL": model,
            "MEMLOOP_PROFILE": profile,
            "MEMLOOP_TOKENIZER": str(TOKENIZER),
            "MEMLOOP_STORAGE_URL": (folder / "documents").as_uri(),
            "MEMLOOP_READ_CONCURRENCY": str(reads_at_once),
            "MEMLOOP_LOG_LEVEL": "error",
        }
        pids = {
            name: stack.enter_context(
                started(name, (sys.executable, "-m", module), {**settings, "MEMLOOP_PORT": str(ports[name])})
            ).pid
            for name, module in (("gateway", "gateway.main"), ("worker", "gateway.worker"))
        }
        for name in pids:
            _wait_until_alive(f"http://127.0.0.1:{ports[name]}/livez")
        yield Stack(f"http://127.0.0.1:{ports['gateway']}", pids["gateway"], pids["worker"])


def _wait_until_alive(url: str) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError(f"nothing answers at {url}; see {log_of('*')}")


def _peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
