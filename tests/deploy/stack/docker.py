"""The container engine of this machine, by its own command line."""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_LAST_CLIENT_WITH_BUILDKIT_INSIDE = 22


class DockerError(RuntimeError):
    """A command failed; the message is its last words."""


def docker(*arguments: str | Path, timeout_s: float = 120.0, given: bytes | None = None) -> str:
    """What ``docker arguments`` prints. Raises DockerError."""
    return run(["docker", *map(str, arguments)], timeout_s=timeout_s, given=given)


def run(
    command: Sequence[str],
    *,
    timeout_s: float,
    given: bytes | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """What a command prints on its standard output. Raises DockerError with its last words."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout_s, input=given, env={**os.environ, **(environment or {})}
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stderr or b"")[-2000:].decode(errors="replace")
        raise DockerError(f"{' '.join(command)} took more than {timeout_s:.0f} s: {said}") from late
    if done.returncode != 0:
        said = (done.stderr or done.stdout)[-4000:].decode(errors="replace")
        raise DockerError(f"{' '.join(command)} ended with {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")


def missing() -> str | None:
    """Why nothing can be run in containers here; None when it can."""
    if shutil.which("docker") is None:
        return "there is no docker command (Debian: docker.io)"
    try:
        docker("version", timeout_s=20)
    except DockerError as error:
        return f"no container engine answers: {str(error).splitlines()[-1]}"
    return None


@functools.cache
def buildkit() -> str:
    """A ``docker`` that builds with BuildKit: a client with the buildx plug-in, or one from before that was needed.

    Raises DockerError when there is none on the PATH.
    """
    folders = os.environ["PATH"].split(os.pathsep)
    clients = dict.fromkeys(str(Path(folder, "docker")) for folder in folders if Path(folder, "docker").exists())
    for client in clients:
        if _builds(client):
            return client
    raise DockerError("no docker client here builds with BuildKit: it needs the buildx plug-in")


def _builds(client: str) -> bool:
    try:
        major = run([client, "version", "--format", "{{.Client.Version}}"], timeout_s=20).split(".")[0]
        if int(major) <= _LAST_CLIENT_WITH_BUILDKIT_INSIDE:
            return True
        run([client, "buildx", "version"], timeout_s=20)
    except (DockerError, ValueError):
        return False
    return True


def has_image(name: str) -> bool:
    """Whether the engine holds the image."""
    try:
        docker("image", "inspect", name)
    except DockerError:
        return False
    return True


def bridge_address() -> str:
    """The address of this machine that containers know as ``host.docker.internal``."""
    return docker("network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}").strip()
