"""The lock of the trainer's image for GPUs has the engine and torch that verl pins, and the verl of the tests."""

import re
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

TRAINER = Path(__file__).parents[2] / "trainer"
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\;]+)", re.MULTILINE)


def locked(name: str) -> dict[str, str]:
    return {package.lower(): pinned for package, pinned in _LOCKED.findall((TRAINER / name).read_text())}


@pytest.fixture(scope="module")
def gpu() -> dict[str, str]:
    return locked("requirements-gpu.lock")


def test_it_has_what_verls_own_extra_for_vllm_pins(gpu: dict[str, str]) -> None:
    asked = [Requirement(line) for line in requires("verl") or ()]
    pinned = [each for each in asked if each.marker is not None and each.marker.evaluate({"extra": "vllm"})]
    assert {"vllm", "transformers"} <= {each.name.lower() for each in pinned}
    wrong = {
        each.name: gpu.get(each.name.lower()) for each in pinned if gpu.get(each.name.lower(), "") not in each.specifier
    }
    assert wrong == {}


def test_it_has_what_our_own_trainer_asks_for(gpu: dict[str, str]) -> None:
    project = tomllib.loads((TRAINER / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = (*project["dependencies"], *extras["rl"], *extras["sft"])
    asked = [each for each in map(Requirement, lines) if not each.name.startswith("memloop")]
    wrong = {each.name: gpu[each.name.lower()] for each in asked if gpu[each.name.lower()] not in each.specifier}
    assert wrong == {}


def test_its_verl_and_ray_are_those_of_the_tests(gpu: dict[str, str]) -> None:
    assert (gpu["verl"], gpu["ray"], gpu["tensordict"]) == (version("verl"), version("ray"), version("tensordict"))


def test_it_has_all_packages_of_the_other_image_but_the_tests(gpu: dict[str, str]) -> None:
    asked = {line.split("<")[0].split("==")[0].split("#")[0].strip().lower() for line in _lines("requirements.in")}
    assert asked - {"pytest", "pytest-asyncio", "pytest-timeout"} - gpu.keys() == set()


def _lines(name: str) -> list[str]:
    return [line for line in (TRAINER / name).read_text().splitlines() if line and not line.startswith("#")]
