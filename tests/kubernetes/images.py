"""Makes the images and hands them to the cluster; or takes those that are in the registry."""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.deploy.stack.docker import docker
from tests.deploy.stack.images import ROOT, build, build_from, build_stand_in, ours
from tests.kubernetes.settings import ClusterSettings

_LOAD_S: Final = 900.0
_SCRIPTED: Final = "memloop/inference-scripted"
SCRIPTED: Final = Path(__file__).parent / "engine/Dockerfile"
_SCRIPTED_FILES: Final = (
    "tests/fakes/job_engine.py",
    "tests/deploy/stack/scripted_engine.py",
    "tests/kubernetes/engine/serve.py",
)


def image_values(settings: ClusterSettings) -> Mapping[str, Mapping[str, str]]:
    """The chart's ``images`` for a run."""
    tagged = {"tag": settings.tag}
    engine = _SCRIPTED if settings.engine == "scripted" else "memloop/inference-cpu"
    values: dict[str, Mapping[str, str]] = {
        "gateway": tagged,
        "memoryStore": tagged,
        "vllmCpu": {"repository": engine, **tagged},
    }
    if settings.databases == "stand-ins":
        for name in ("redis", "qdrant"):
            values[name] = {"registry": settings.registry, "repository": f"memloop-standin/{name}", **tagged}
    return values


def gateway_image(settings: ClusterSettings) -> str:
    """The image from which the tests' own pods run: it has Python."""
    return f"{settings.registry}memloop/gateway:{settings.tag}"


def provide(settings: ClusterSettings) -> int:
    """Build every image and run KUBE_LOAD on it; how many there were. Raises DockerError and CalledProcessError."""
    if not settings.load:
        return 0
    made = _build(settings)
    with tempfile.TemporaryDirectory() as folder:
        for source, repository in made.items():
            target = f"{settings.registry}{repository}:{settings.tag}"
            docker("tag", source, target)
            _load(settings.load, target, Path(folder) / "image.tar")
    return len(made)


def _build(settings: ClusterSettings) -> Mapping[str, str]:
    """The repository of each image, by the tag under which it was built."""
    made = {build(name): f"memloop/{name}" for name in ("gateway", "memory-store")}
    if settings.engine == "cpu":
        made[build("inference-cpu")] = "memloop/inference-cpu"
    else:
        made[build_scripted(build("inference"))] = _SCRIPTED
    if settings.databases == "stand-ins":
        made |= {build_stand_in(name): f"memloop-standin/{name}" for name in ("redis", "qdrant")}
    return made


def scripted_context(folder: Path) -> Path:
    """A folder with what the scripted engine's Dockerfile copies; .dockerignore closes the repository's own."""
    for name in _SCRIPTED_FILES:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return folder


def build_scripted(launcher: str) -> str:
    """Put the scripted engine behind a launcher's image; return the tag. Raises DockerError."""
    with tempfile.TemporaryDirectory() as folder:
        context = scripted_context(Path(folder))
        return build_from(ours("inference-scripted"), SCRIPTED, context=context, arguments={"LAUNCHER": launcher})


def _load(command: str, image: str, archive: Path) -> None:
    if "{archive}" in command:
        docker("save", "--output", archive, image, timeout_s=_LOAD_S)
    text = command.replace("{image}", shlex.quote(image)).replace("{archive}", shlex.quote(str(archive)))
    subprocess.run(text, shell=True, check=True, timeout=_LOAD_S)
    archive.unlink(missing_ok=True)
