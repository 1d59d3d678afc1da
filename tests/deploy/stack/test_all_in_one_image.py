"""The all-in-one image as the docs start it, beside a scripted model on this machine."""

import contextlib
import json
import time
import urllib.request
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.deploy.stack.compose import smoke_at
from tests.deploy.stack.docker import DockerError, bridge_address, docker
from tests.deploy.stack.images import size_bytes
from tests.deploy.stack.scripted_engine import MODEL, scripted_engine
from tests.fakes.ports import free_port

pytestmark = pytest.mark.containers

_HEALTHY_S: Final = 600.0
_LIMIT_MB: Final = 1_700
_STOPPED_S: Final = 60
_CONFINED: Final = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
_FIRST_KEY: Final = "memloop: the API key, shown this once: "


@dataclass(frozen=True)
class Running:
    """A container of the image, and where its gateway answers."""

    name: str
    url: str

    def key(self) -> str:
        """The key that its first start printed."""
        return docker("logs", self.name).partition(_FIRST_KEY)[2].split()[0]

    def wait(self) -> None:
        """Until its health check passes. Raises DockerError with its last words."""
        deadline = time.monotonic() + _HEALTHY_S
        while self.state("{{.State.Health.Status}}") != "healthy":
            if time.monotonic() > deadline:
                raise DockerError(f"not healthy after {_HEALTHY_S:.0f} s: {docker('logs', '--tail', '30', self.name)}")
            time.sleep(0.5)

    def state(self, form: str) -> str:
        """What the engine knows of it."""
        return docker("inspect", "--format", form, self.name).strip()


@pytest.fixture(scope="module")
def engine_port(all_in_one: str) -> Iterator[int]:
    """A scripted model on this machine, where containers reach it."""
    with scripted_engine(bridge_address()) as port:
        yield port


@contextlib.contextmanager
def running(image: str, *more: str) -> Generator[Running]:
    """A container as the docs start it, more confined; removed at the end with its volumes."""
    name, port = f"memlooptest-{uuid.uuid4().hex[:8]}", free_port()
    host = ("--add-host", "host.docker.internal:host-gateway")
    docker("run", "--detach", "--name", name, "--publish", f"127.0.0.1:{port}:7800", *host, *_CONFINED, *more, image)
    try:
        yield Running(name, f"http://127.0.0.1:{port}")
    finally:
        docker("rm", "--force", "--volumes", name)


@pytest.fixture(scope="module")
def started(all_in_one: str, engine_port: int) -> Iterator[Running]:
    url = f"http://host.docker.internal:{engine_port}/v1"
    began = time.monotonic()
    with running(all_in_one, "--env", f"MEMLOOP_ENGINE_URL={url}", "--env", f"MEMLOOP_MODEL={MODEL}") as found:
        found.wait()
        print(f"all-in-one: {size_bytes(all_in_one) / 1e6:.0f} MB, healthy after {time.monotonic() - began:.0f} s")
        yield found


def test_it_is_as_small_as_promised(all_in_one: str) -> None:
    assert size_bytes(all_in_one) < _LIMIT_MB * 1_000_000


def test_it_passes_the_smoke_test_with_the_key_that_its_first_start_printed(started: Running) -> None:
    done = smoke_at(started.url, started.key())
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_runs_as_an_unprivileged_user(started: Running) -> None:
    assert docker("exec", started.name, "id", "-u").strip() == "10001"


def test_only_the_gateway_listens_beyond_loopback(started: Running) -> None:
    found = docker("exec", started.name, "cat", "/proc/net/tcp", "/proc/net/tcp6")
    rows = [line.split() for line in found.splitlines() if ": " in line]
    bound = {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and not row[1].startswith("0100007F")}
    assert bound - _docker_dns_ports(rows) == {7800}


def test_memories_and_the_key_outlive_the_container(started: Running) -> None:
    key, fact = started.key(), "The sauna opens at seven."
    message = {"messages": [{"role": "user", "content": fact}], "user_id": "stays", "infer": False}
    _ask(started, key, "/v1/memory/add", message)
    docker("stop", started.name)
    assert started.state("{{.State.ExitCode}}") == "0"
    docker("start", started.name)
    started.wait()
    assert docker("logs", started.name).count(_FIRST_KEY) == 1
    found = _ask(started, key, "/v1/memory/search", {"query": "sauna", "user_id": "stays", "include_raw": True})
    assert fact in json.dumps(found)


def test_a_dead_part_ends_the_container_for_its_restart_policy(started: Running) -> None:
    docker("exec", started.name, "python", "-c", _KILL_REDIS)
    assert docker("wait", started.name, timeout_s=_STOPPED_S).strip() == "1"
    docker("start", started.name)
    started.wait()


def test_without_an_engine_it_ends_with_what_it_needs(all_in_one: str) -> None:
    with pytest.raises(DockerError, match="set MEMLOOP_ENGINE_URL"):
        docker("run", "--rm", "--network", "none", all_in_one)


_KILL_REDIS: Final = """
import os, pathlib, signal
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    if (folder / "comm").read_text().startswith("redis-server"):
        os.kill(int(folder.name), signal.SIGKILL)
"""


def _docker_dns_ports(rows: list[list[str]]) -> set[int]:
    """Docker's own resolver listens on 127.0.0.11 of user-defined networks."""
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[1].startswith("0B00007F")}


def _ask(stack: Running, key: str, path: str, body: dict[str, Any]) -> Any:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(stack.url + path, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
