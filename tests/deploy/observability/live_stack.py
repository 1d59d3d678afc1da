"""The local stack as `memloop up` starts it, and a Prometheus that scrapes it: processes, ports, queries."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.fakes.ports import free_port
from tests.fakes.processes import end

START_S = 300.0
STOP_S = 90.0
JOBS = {"gateway": 0, "memory-store": 1, "inference": 2, "engine": 3, "worker": 4}
"""Each job's port, counted from the gateway's."""


@dataclass(frozen=True)
class Prometheus:
    """A running one."""

    url: str

    def get(self, path: str, **parameters: str) -> dict:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as reply:
            return json.load(reply)["data"]

    def values(self, expr: str) -> list[float]:
        """The values of an instant query; raises HTTPError for an expression that cannot be evaluated."""
        return [float(sample["value"][1]) for sample in self.get("query", query=expr)["result"]]


@contextmanager
def local_stack(root: Path, folder: Path, **settings: str) -> Iterator[int]:
    """Everything real, the tiny model's vLLM included; gives the gateway's port."""
    port = free_port(*range(1, 6))
    command = [root / ".venv/bin/memloop", "up", "--home", folder / "home", "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOOP_", "PYTHON"))}
    with _process(command, folder / "stack.log", environment | {"MEMLOOP_MODEL": "memloop-tiny"} | settings, cwd=root):
        _until_answers(f"http://127.0.0.1:{port}/readyz", folder / "stack.log")
        yield port


@contextmanager
def suspended(module: str, port: int) -> Iterator[None]:
    """The process of ours that runs this module on this port hangs meanwhile."""
    wanted = f"MEMLOOP_PORT={port}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    (pid,) = [pid for pid in pids if _runs(pid, module) and wanted in _of(pid, "environ").split(b"\0")]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def trainer_exporter(root: Path, folder: Path) -> Iterator[int]:
    """The exporter over the log of a real run; gives its port."""
    port = free_port()
    log = root / "tests/trainer/golden/verl_steps.jsonl"
    command = [root / ".venv/bin/python", "-m", "trainer.metrics_exporter", log, "--port", str(port)]
    with _process(command, folder / "exporter.log", dict(os.environ), cwd=root):
        _until_answers(f"http://127.0.0.1:{port}/metrics", folder / "exporter.log")
        yield port


@contextmanager
def prometheus(root: Path, folder: Path, targets: dict[str, int]) -> Iterator[Prometheus]:
    """The compose stack's configuration with other addresses and a scrape and an evaluation every second."""
    port, rules = free_port(), folder / "rules"
    rules.mkdir()
    for name in ("rules.yml", "alerts.yml"):
        text = (root / "deploy/helm/memloop/observability" / name).read_text()
        (rules / name).write_text(re.sub(r"interval: \w+", "interval: 1s", text))
    config = yaml.safe_load((root / "deploy/observability/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [f"{rules}/*.yml"]
    config["scrape_configs"] = [
        {"job_name": job["job_name"], "static_configs": [{"targets": [f"127.0.0.1:{targets[job['job_name']]}"]}]}
        for job in config["scrape_configs"]
        if job["job_name"] in targets
    ]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with _process(command, folder / "prometheus.log", dict(os.environ), cwd=folder):
        _until_answers(f"http://127.0.0.1:{port}/-/ready", folder / "prometheus.log")
        yield Prometheus(f"http://127.0.0.1:{port}")


@contextmanager
def _process(command: list, log: Path, environment: dict[str, str], cwd: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            end(process, timeout_s=STOP_S)


def _until_answers(url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"{url} did not answer within {START_S:g} s:\n{log.read_text()[-3000:]}")


def _runs(pid: int, module: str) -> bool:
    """Whether it is Python with this module, not the guard that started it."""
    words = _of(pid, "cmdline").decode(errors="replace").split("\0")[:-1]
    return words[1:] == ["-m", module]


def _of(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
