"""Runs the stack of ``docker-compose.yml`` with the images that can be had here."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.deploy.stack.docker import DockerError, docker, run
from tests.deploy.stack.images import ROOT, TAG

_START_S: Final = 600.0
_POLL_S: Final = 1.0
PORTS: Final = ("MEMLOOP_GATEWAY_PORT", "MEMLOOP_PROMETHEUS_PORT", "MEMLOOP_GRAFANA_PORT")


def compose_command() -> list[str] | None:
    """Docker's own compose, or the older program of that name; None without either."""
    with contextlib.suppress(DockerError, FileNotFoundError):
        run(["docker", "compose", "version"], timeout_s=20)
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


def for_older_compose(text: str, *, profile: str, images: Mapping[str, str]) -> dict[str, Any]:
    """The file as docker-compose 1.29 reads it, with only the services of ``profile`` whose images are given.

    Dropped is what that version does not know: ``name``, ``required`` and profiles that are decided already.
    """
    file: dict[str, Any] = yaml.safe_load(text)
    chosen = {name: service for name, service in file["services"].items() if _is_in(service, profile)}
    services = {name: _service(chosen[name], chosen, image) for name, image in images.items()}
    return {"services": services, "networks": file["networks"], "volumes": file["volumes"]}


def _is_in(service: Mapping[str, Any], profile: str) -> bool:
    return profile in service.get("profiles", [profile])


def _service(service: Mapping[str, Any], chosen: Mapping[str, Any], image: str) -> dict[str, Any]:
    kept = {key: value for key, value in service.items() if key not in {"profiles", "build"}}
    needs = {
        name: {"condition": need["condition"]}
        for name, need in service.get("depends_on", {}).items()
        if name in chosen or need.get("required", True)
    }
    mounts = [_absolute(one) for one in kept.get("volumes", ())]
    return {**kept, "image": image, "depends_on": needs, "volumes": mounts}


def _absolute(volume: str) -> str:
    """Files of this tree are mounted from where it is, not from where the derived file is."""
    return f"{ROOT}{volume[1:]}" if volume.startswith("./") else volume


@dataclass(frozen=True)
class ComposeStack:
    """One project of compose: its folder holds ``.env`` and the derived file."""

    folder: Path
    project: str
    command: Sequence[str]
    api_key: str
    ports: Mapping[str, int]

    @property
    def url(self) -> str:
        """The gateway's address."""
        return f"http://127.0.0.1:{self.ports['MEMLOOP_GATEWAY_PORT']}"

    @property
    def services(self) -> list[str]:
        """Those of the derived file."""
        return sorted(yaml.safe_load((self.folder / "docker-compose.yml").read_text())["services"])

    def compose(self, *arguments: str, timeout_s: float = _START_S) -> str:
        """A command of compose. Raises DockerError."""
        place = ["--project-directory", str(self.folder), "--project-name", self.project]
        files = ["--file", str(self.folder / "docker-compose.yml"), "--env-file", str(self.folder / ".env")]
        return run([*self.command, *place, *files, *arguments], timeout_s=timeout_s)

    def up(self) -> None:
        """What an operator does: start whatever does not run; then wait until all is healthy."""
        self.compose("up", "--detach")
        self.wait_healthy()

    def wait_healthy(self, *, timeout_s: float = _START_S) -> None:
        """Until every container is. Raises DockerError with the last words of one that is not."""
        deadline = time.monotonic() + timeout_s
        while unwell := [name for name in self.services if self.state(name) != "healthy"]:
            if time.monotonic() > deadline:
                words = docker("logs", "--tail", "30", self.container(unwell[0]))
                raise DockerError(f"not healthy after {timeout_s:.0f} s: {unwell}; {unwell[0]} says: {words}")
            time.sleep(_POLL_S)

    def container(self, service: str) -> str:
        """The id of the service's container, running or not."""
        labels = (f"com.docker.compose.project={self.project}", f"com.docker.compose.service={service}")
        filters = [word for label in labels for word in ("--filter", f"label={label}")]
        return docker("ps", "--all", "--quiet", "--no-trunc", *filters).strip()

    def inspect(self, service: str) -> dict[str, Any]:
        """What the engine knows of the service's container."""
        found: list[dict[str, Any]] = json.loads(docker("inspect", self.container(service)))
        return found[0]

    def state(self, service: str) -> str:
        """``healthy``, ``unhealthy``, ``starting``; ``exited`` and the like when it does not run."""
        container = self.container(service)
        if not container:
            return "absent"
        form = "{{if .State.Running}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}"
        return docker("inspect", "--format", form, container).strip()

    def kill(self, service: str) -> None:
        """SIGKILL; compose's restart policy leaves it dead, as it does whatever an operator kills."""
        docker("kill", "--signal", "KILL", self.container(service))

    def down(self) -> None:
        """Remove the containers, the networks and the data."""
        self.compose("down", "--volumes", "--timeout", "10", timeout_s=300)


def new_stack(folder: Path, images: Mapping[str, str], command: Sequence[str]) -> ComposeStack:
    """A project with a ``.env`` as the README makes it, on ports of its own. Nothing is started."""
    key = run([sys.executable, str(ROOT / "deploy/make_env.py"), "--out", str(folder / ".env")], timeout_s=30).strip()
    ports = _free_ports()
    with (folder / ".env").open("a") as file:
        file.writelines(f"{name}={port}\n" for name, port in ports.items())
    derived = for_older_compose((ROOT / "docker-compose.yml").read_text(), profile="cpu", images=images)
    (folder / "docker-compose.yml").write_text(yaml.safe_dump(derived, sort_keys=False))
    return ComposeStack(folder, f"memlooptest{os.getpid()}", command, key, ports)


def smoke(stack: ComposeStack, *, api_key: str | None = None) -> subprocess.CompletedProcess[str]:
    """The README's smoke test, from this machine; with the stack's own key unless another is given."""
    command = [sys.executable, str(ROOT / "deploy/smoke.py"), "--url", stack.url, "--timeout", "300"]
    environment = {**os.environ, "MEMLOOP_API_KEY": api_key or stack.api_key}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)


def _free_ports() -> dict[str, int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in PORTS]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return dict(zip(PORTS, (one.getsockname()[1] for one in sockets), strict=True))


def image_names(profile_services: Sequence[str]) -> dict[str, str]:
    """Tags of ours as the tests build them, by service."""
    ours = {"worker": "gateway"}
    return {name: f"memloop/{ours.get(name, name)}:{TAG}" for name in profile_services}
