"""Builds our images, and the stand-ins for those of others that cannot be pulled."""

import tempfile
from pathlib import Path
from typing import Final

from tests.deploy.stack.base_image import python_image
from tests.deploy.stack.docker import buildkit, docker, run
from tests.deploy.stack.package_source import build_secrets

ROOT: Final = Path(__file__).parents[3]
TAG: Final = "test"
STAND_INS: Final = ("redis", "qdrant", "prometheus")
_BUILD_S: Final = 1800.0


def ours(name: str) -> str:
    """The tag of an image of ours as the tests build it."""
    return f"memloop/{name}:{TAG}"


def stand_in(name: str) -> str:
    """The tag of a stand-in."""
    return f"memloop-standin/{name}:{TAG}"


def build(name: str) -> str:
    """Build ``deploy/docker/{name}.Dockerfile`` as a user would; return its tag. Raises DockerError.

    The launcher's image is built on bare Python: an engine's own has tens of gigabytes, and few places can pull it.
    """
    file = ROOT / f"deploy/docker/{name}.Dockerfile"
    base = "ENGINE_IMAGE" if name == "inference" else "PYTHON_IMAGE"
    return build_from(ours(name), file, context=ROOT, arguments={base: python_image(), "REVISION": "test"})


def build_all_in_one() -> str:
    """Build the image that is made of the gateway's and the store's; return its tag. Raises DockerError."""
    file = ROOT / "deploy/docker/all-in-one.Dockerfile"
    parts = {"GATEWAY_IMAGE": ours("gateway"), "STORE_IMAGE": ours("memory-store"), "REVISION": "test"}
    return build_from(ours("all-in-one"), file, context=ROOT, arguments=parts)


def build_stand_in(name: str) -> str:
    """Build a stand-in; return its tag. Raises DockerError."""
    context = Path(__file__).parent / "standins"
    base = ours("memory-store") if name == "qdrant" else python_image()
    return build_from(stand_in(name), context / f"{name}.Dockerfile", context=context, arguments={"BASE": base})


def build_from(tag: str, file: Path, *, context: Path, arguments: dict[str, str]) -> str:
    """Build any Dockerfile; return the tag. Raises DockerError."""
    given = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder, build_secrets(Path(folder)) as secrets:
        command = [buildkit(), "build", "--progress", "plain", *secrets, *given, "--tag", tag, "--file", str(file)]
        run([*command, str(context)], timeout_s=_BUILD_S, environment={"DOCKER_BUILDKIT": "1"})
    return tag


def size_bytes(tag: str) -> int:
    """All layers, unpacked."""
    return int(docker("image", "inspect", "--format", "{{.Size}}", tag))
