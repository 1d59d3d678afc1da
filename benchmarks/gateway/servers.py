"""Starts the servers of a run, each its own process on a free loopback port, and measures their cost (Linux)."""

import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gateway.workload import API_KEY, TENANT
from benchmarks.mock_engine import free_port, wait_for
from benchmarks.started import end_as_on_ctrl_c
from memloop_cli.stack.redis import find_redis, redis_command

_START_S = 120.0
_STOP_S = 15.0
_NONE: Mapping[str, str] = {}
_PYTHON = Path(sys.executable)
_LIBC = ctypes.CDLL(None, use_errno=True)


class ServerError(RuntimeError):
    """A server did not start."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and its children."""

    name: str
    port: int
    pid: int

    def cpu_s(self) -> float:
        """Return the processor seconds used so far, in nanosecond steps."""
        return sum(_cpu_s(pid) for pid in _family(self.pid))

    def rss_mb(self) -> float:
        """Return the resident memory in MB (10^6 bytes)."""
        return sum(_rss_bytes(pid) for pid in _family(self.pid)) / 1e6


@contextmanager
def gateway(
    *, engine_url: str, redis: Server, store: Server, settings: Mapping[str, str] = _NONE, python: Path = _PYTHON
) -> Generator[Server]:
    """Run our gateway as one process with an operator's defaults; ``settings`` are added."""
    own = _gateway_settings(engine_url, redis=redis, store=store)
    with _ours("gateway", "gateway.main", {**own, **settings}, python) as server:
        yield server


@contextmanager
def worker(
    *, engine_url: str, redis: Server, store: Server, settings: Mapping[str, str] = _NONE, python: Path = _PYTHON
) -> Generator[Server]:
    """Run our worker as one process with an operator's defaults; ``settings`` are added."""
    own = _gateway_settings(engine_url, redis=redis, store=store)
    with _ours("worker", "gateway.worker", {**own, **settings}, python) as server:
        yield server


def _gateway_settings(engine_url: str, *, redis: Server, store: Server) -> dict[str, str]:
    return {
        "MEMLOOP_ENGINE_URL": engine_url,
        "MEMLOOP_MODEL": "mock",
        "MEMLOOP_REDIS_URL": f"redis://127.0.0.1:{redis.port}/0",
        "MEMLOOP_STORE_URL": f"http://127.0.0.1:{store.port}",
        "MEMLOOP_API_KEYS": f"{TENANT}:{hashlib.sha256(API_KEY.encode()).hexdigest()}",
    }


@contextmanager
def memory_store(
    *, redis: Server, folder: Path, settings: Mapping[str, str] = _NONE, python: Path = _PYTHON
) -> Generator[Server]:
    """Run our memory store with its default embedding model, its vectors in the folder; ``settings`` are added."""
    environment = {
        "MEMLOOP_REDIS_URL": f"redis://127.0.0.1:{redis.port}/0",
        "MEMLOOP_DATA_DIR": str(folder / "edge"),
        "HF_HUB_OFFLINE": "1",
    }
    with _ours("store", "memory_store.main", {**environment, **settings}, python) as server:
        yield server


@contextmanager
def qdrant_stand_in() -> Generator[str]:
    """Run the tests' stand-in of a Qdrant server, which repeats its answers, and yield its URL."""
    port = free_port()
    command = (sys.executable, "-m", "tests.fakes.qdrant_replaying", str(port))
    with _running("qdrant", port, command, _clean(os.environ)):
        wait_for(port)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def redis_server(folder: Path) -> Generator[Server]:
    """Run a real Redis with the local stack's append-only log."""
    port, data = free_port(), folder / "redis"
    data.mkdir(exist_ok=True)
    with _running("redis", port, redis_command(find_redis(), port=port, folder=data), os.environ) as server:
        wait_for(port)
        yield server


@contextmanager
def plain_proxy(*, engine_url: str) -> Generator[Server]:
    """Run the floor: a proxy that only forwards requests. Raises ServerError."""
    port = free_port()
    command = (sys.executable, "-m", "benchmarks.gateway.plain", str(port), engine_url)
    with _running("plain", port, command, _clean(os.environ)) as server:
        _wait_until_ready(server, "/readyz")
        yield server


@contextmanager
def litellm_proxy(command: Path, *, engine_url: str, folder: Path) -> Generator[Server]:
    """Run LiteLLM's proxy in its cheapest form: one worker, no database, no call-backs. Raises ServerError."""
    port, config = free_port(), folder / "litellm.yaml"
    config.write_text(_LITELLM_CONFIG.format(engine_url=engine_url), encoding="utf-8")
    arguments = (str(command), "--config", str(config), "--host", "127.0.0.1", "--port", str(port))
    settings = {"LITELLM_MASTER_KEY": API_KEY, "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment = {**_clean(os.environ), **settings}
    with _running("litellm", port, (*arguments, "--num_workers", "1"), environment) as server:
        _wait_until_ready(server, "/health/liveliness")
        yield server


_LITELLM_CONFIG = """\
model_list:
  - model_name: mock
    litellm_params:
      model: openai/mock
      api_base: {engine_url}
      api_key: sk-benchmark
litellm_settings:
  telemetry: false
"""


@contextmanager
def _ours(name: str, module: str, environment: Mapping[str, str], python: Path) -> Generator[Server]:
    port = free_port()
    whole = {**_clean(os.environ), **environment, "MEMLOOP_HOST": "127.0.0.1", "MEMLOOP_PORT": str(port)}
    with _running(name, port, (str(python), "-m", module), whole) as server:
        _wait_until_ready(server, "/readyz")
        yield server


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Remove the settings of the operator's own stack."""
    return {name: value for name, value in environment.items() if not name.startswith(("MEMLOOP_", "QDRANT_"))}


@contextmanager
def _running(name: str, port: int, command: tuple[str, ...], environment: Mapping[str, str]) -> Generator[Server]:
    """Run the process in its own group and stop it on exit. A failed start raises with the process's output."""
    end_as_on_ctrl_c()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            yield Server(name, port, process.pid)
        except (ServerError, TimeoutError) as error:
            log.seek(0)
            words = log.read()[-1500:].decode("utf-8", "replace")
            raise ServerError(f"{error}\n{words}") from error
        finally:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(timeout=_STOP_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _wait_until_ready(server: Server, path: str) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if not Path(f"/proc/{server.pid}/stat").exists() or _is_dead(server.pid):
            raise ServerError(f"{server.name} exited while starting")
        if _answers(f"http://127.0.0.1:{server.port}{path}"):
            return
        time.sleep(0.2)
    raise ServerError(f"{server.name} was not ready within {_START_S:.0f} s")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _is_dead(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _family(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(int(child))


def _cpu_s(pid: int) -> float:
    clock = ctypes.c_int()
    if _LIBC.clock_getcpuclockid(pid, ctypes.byref(clock)):
        raise ServerError(f"process {pid} has no processor clock")
    return time.clock_gettime(clock.value)


def _rss_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
