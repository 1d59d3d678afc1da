"""The images, built once in a run, and the stack, started once; both say why when they cannot be had."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.deploy.stack import docker as engine
from tests.deploy.stack.compose import ComposeStack, find_compose, image_names, new_stack
from tests.deploy.stack.images import STAND_INS, build, build_all_in_one, build_stand_in
from tests.deploy.stack.scripted_engine import MODEL, scripted_engine

OURS = ("gateway", "memory-store", "inference-cpu")
SERVICES = ("memory-store", "gateway", "worker")
ENGINES = ("inference-cpu",)


@pytest.fixture(scope="session")
def container_engine() -> None:
    """Skips without one."""
    reason = engine.missing()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def images(container_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Tags by name: ours, built as a user builds them, and the stand-ins."""
    try:
        ours = {name: build(name) for name in OURS}
        return {**ours, **{name: build_stand_in(name) for name in STAND_INS}}
    except engine.DockerError as error:
        if "cannot be pulled" in str(error) or "buildx" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="session")
def launcher(images: Mapping[str, str]) -> str:
    """The launcher's image, on bare Python in place of an engine's image."""
    return build("inference")


@pytest.fixture(scope="session")
def trainer(images: Mapping[str, str]) -> str:
    """The trainer's image."""
    return build("trainer")


@pytest.fixture(scope="session")
def all_in_one(images: Mapping[str, str]) -> str:
    """The image of everything but the model."""
    return build_all_in_one()


@pytest.fixture(scope="session")
def stack(images: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeStack]:
    """The whole stack with the profiles cpu and reader, up and healthy; removed at the end with its data."""
    folder = tmp_path_factory.mktemp("stack")
    services = (*SERVICES, *ENGINES, "inference-reader")
    found = _stack(folder, images, services, profiles=("cpu", "reader"), asked=("--reader",))
    with _removed_at_the_end(found):
        found.up()
        yield found


@pytest.fixture(scope="module")
def cpu_stack(images: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeStack]:
    """The stack of the profile cpu with two engines, up and healthy; removed after the module with its data."""
    found = _stack(tmp_path_factory.mktemp("cpu-stack"), images, (*SERVICES, *ENGINES), profiles=("cpu",))
    with _removed_at_the_end(found):
        found.up(inference_cpu=2)
        yield found


@pytest.fixture(scope="module")
def external_stack(images: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeStack]:
    """The stack of the profile external, up and healthy; its engine is a scripted one on this machine."""
    with scripted_engine(engine.bridge_address()) as port:
        asked = ("--engine-url", f"http://localhost:{port}/v1", "--model", MODEL)
        folder = tmp_path_factory.mktemp("external-stack")
        found = _stack(folder, images, SERVICES, profiles=("external",), asked=asked)
        with _removed_at_the_end(found):
            found.up()
            yield found


def _stack(
    folder: Path, images: Mapping[str, str], ours: Sequence[str], profiles: Sequence[str], asked: Sequence[str] = ()
) -> ComposeStack:
    program = find_compose()
    if program is None:
        pytest.skip("there is no docker compose (Debian: docker-compose)")
    names = {**image_names(ours), **{name: images[name] for name in STAND_INS}}
    return new_stack(folder, names, program, profiles, asked)


@contextlib.contextmanager
def _removed_at_the_end(stack: ComposeStack) -> Iterator[None]:
    try:
        yield
    finally:
        stack.down()
