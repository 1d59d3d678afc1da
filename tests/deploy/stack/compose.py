"""Runs the stack of ``docker-compose.yml`` with the images that can be had here."""

import contextlib
import json
import os
import shutil
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
from tests.fakes.ports import free_port

_START_S: Final = 600.0
_POLL_S: Final = 1.0
PORTS: Final = ("MEMLOOP_GATEWAY_PORT", "MEMLOOP_PROMETHEUS_PORT", "MEMLOOP_GRAFANA_PORT")


@dataclass(frozen=True)
class Compose:
    """A program that runs compose files; ``reads_ours`` is whether it knows all that our file says."""

    command: Sequence[str]
    reads_ours: bool


def find_compose() -> Compose | None:
    """Docker's own compose, as a plug-in or beside this Python; else the older program of that name."""
    beside = Path(sys.executable).with_name("docker-compose")
    for command in (["docker", "compose"], [str(beside)]):
        with contextlib.suppress(DockerError, FileNotFoundError):
            run([*command, "version"], timeout_s=20)
            return Compose(command, reads_ours=True)
    return Compose(["docker-compose"], reads_ours=False) if shutil.which("docker-compose") else None


def override(text: str, images: Mapping[str, str]) -> dict[str, Any]:
    """What is laid over our file: an image for each service, and for one without a profile that nobody starts."""
    known = yaml.safe_load(text)["services"]
    left_out = {name: {"profiles": [*known[name].get("profiles", ()), "left-out"]} for name in known.keys() - images}
    return {"services": {**{name: {"image": image} for name, image in images.items()}, **left_out}}


def for_older_compose(text: str, *, profiles: Sequence[str], images: Mapping[str, str]) -> dict[str, Any]:
    """The file as docker-compose 1.29 reads it, with only the services of ``profiles`` whose images are given.

    Dropped is what that version does not know: ``name``, ``required``, optional files of settings, and profiles that
    are decided already.
    """
    file: dict[str, Any] = yaml.safe_load(text)
    chosen = {name: service for name, service in file["services"].items() if _is_in(service, profiles)}
    services = {name: _service(chosen[name], chosen, image) for name, image in images.items()}
    return {"services": services, "networks": file["networks"], "volumes": file["volumes"]}


def _is_in(service: Mapping[str, Any], profiles: Sequence[str]) -> bool:
    return not {*service.get("profiles", profiles)}.isdisjoint(profiles)


def _service(service: Mapping[str, Any], chosen: Mapping[str, Any], image: str) -> dict[str, Any]:
    kept = {key: value for key, value in service.items() if key not in {"profiles", "build", "env_file"}}
    needs = {
        name: {"condition": need["condition"]}
        for name, need in service.get("depends_on", {}).items()
        if name in chosen or need.get("required", True)
    }
    return {**kept, "image": image, "depends_on": needs}


@dataclass(frozen=True)
class ComposeStack:
    """One project of compose: its folder holds ``.env``; ``files`` are what compose reads."""

    folder: Path
    project: str
    program: Compose
    files: Sequence[Path]
    profiles: Sequence[str]
    services: Sequence[str]
    api_key: str
    ports: Mapping[str, int]

    @property
    def url(self) -> str:
        """The gateway's address."""
        return f"http://127.0.0.1:{self.ports['MEMLOOP_GATEWAY_PORT']}"

    def compose(self, *arguments: str, timeout_s: float = _START_S) -> str:
        """A command of compose. Raises DockerError."""
        place = ["--project-directory", str(ROOT), "--project-name", self.project]
        files = [word for file in self.files for word in ("--file", str(file))]
        chosen = [word for profile in self.profiles for word in ("--profile", profile)]
        given = [*place, *files, "--env-file", str(self.folder / ".env"), *chosen]
        return run([*self.program.command, *given, *arguments], timeout_s=timeout_s)

    def up(self, **replicas: int) -> None:
        """What an operator does: start whatever does not run, and wait until all is healthy.

        ``replicas`` are numbers of containers by service, underscores for hyphens.
        """
        scales = [f"--scale={name.replace('_', '-')}={count}" for name, count in replicas.items()]
        self.compose("up", "--detach", *scales, *(["--wait"] if self.program.reads_ours else []))
        self.wait_healthy()

    def wait_healthy(self, *, timeout_s: float = _START_S) -> None:
        """Until every container is. Raises DockerError with the last words of one that is not."""
        deadline = time.monotonic() + timeout_s
        while unwell := [name for name in self.services if self.state(name) != "healthy"]:
            if time.monotonic() > deadline:
                words = self.compose("logs", "--tail", "30", unwell[0])
                raise DockerError(f"not healthy after {timeout_s:.0f} s: {unwell}; {unwell[0]} says: {words}")
            time.sleep(_POLL_S)

    def container(self, service: str) -> str:
        """The id of the service's only container, running or not; empty when there is none."""
        [only] = self.containers(service) or [""]
        return only

    def containers(self, service: str) -> list[str]:
        """The ids of the service's containers, running or not."""
        labels = (f"com.docker.compose.project={self.project}", f"com.docker.compose.service={service}")
        filters = [word for label in labels for word in ("--filter", f"label={label}")]
        return docker("ps", "--all", "--quiet", "--no-trunc", *filters).split()

    def inspect(self, service: str) -> dict[str, Any]:
        """What the engine knows of the service's only container."""
        found: list[dict[str, Any]] = json.loads(docker("inspect", self.container(service)))
        return found[0]

    def state(self, service: str) -> str:
        """``healthy``, ``unhealthy``, ``starting``; ``exited`` and the like when it does not run.

        Of several containers, the state of one that is not healthy.
        """
        form = "{{if .State.Running}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}"
        states = [docker("inspect", "--format", form, one).strip() for one in self.containers(service)]
        return next((state for state in states if state != "healthy"), "healthy" if states else "absent")

    def kill(self, service: str) -> None:
        """SIGKILL; compose's restart policy leaves it dead, as it does whatever an operator kills."""
        docker("kill", "--signal", "KILL", self.container(service))

    def down(self) -> None:
        """Remove the containers, the networks and the data."""
        self.compose("down", "--volumes", "--timeout", "10", timeout_s=300)


def new_stack(
    folder: Path, images: Mapping[str, str], program: Compose, profiles: Sequence[str], asked: Sequence[str] = ()
) -> ComposeStack:
    """A project with a ``.env`` as the docs make it, on ports of its own. Nothing is started.

    ``asked`` are arguments of ``make_env.py`` beside the profile.
    """
    env = folder / ".env"
    told = ("--model", "memloop-tiny") if profiles[0] == "cpu" else ()  # the tests tell and ask of its world
    words = ("--profile", profiles[0], *told, *asked, "--out", str(env))
    command = [sys.executable, str(ROOT / "deploy/make_env.py"), *words]
    key = run(command, timeout_s=30).strip()
    ports = {name: free_port() for name in PORTS}
    with env.open("a") as file:
        file.writelines(f"{name}={port}\n" for name, port in ports.items())
    ours, own = ROOT / "docker-compose.yml", folder / "docker-compose.test.yml"
    made = override(ours.read_text(), images) if program.reads_ours else None
    derived = made or for_older_compose(ours.read_text(), profiles=profiles, images=images)
    own.write_text(yaml.safe_dump(derived, sort_keys=False))
    files = [ours, own] if program.reads_ours else [own]
    project = f"memlooptest{os.getpid()}{''.join(profiles)}"
    return ComposeStack(folder, project, program, files, profiles, sorted(images), key, ports)


def smoke(stack: ComposeStack, *, api_key: str | None = None) -> subprocess.CompletedProcess[str]:
    """The README's smoke test, from this machine; with the stack's own key unless another is given."""
    return smoke_at(stack.url, api_key or stack.api_key)


def smoke_at(url: str, api_key: str) -> subprocess.CompletedProcess[str]:
    """The same for any gateway."""
    command = [sys.executable, str(ROOT / "deploy/smoke.py"), "--url", url, "--timeout", "300"]
    environment = {**os.environ, "MEMLOOP_API_KEY": api_key}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)


def image_names(profile_services: Sequence[str]) -> dict[str, str]:
    """Tags of ours as the tests build them, by service."""
    ours = {"worker": "gateway", "inference-reader": "inference-cpu"}
    return {name: f"memloop/{ours.get(name, name)}:{TAG}" for name in profile_services}
