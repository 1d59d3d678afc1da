"""The trainer's command lines in an environment without verl, Hydra and Ray, as serving's is."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.__main__ import CAPABILITIES

RECIPE = Path("trainer/recipes/tiny-memagent-cpu.yaml")


def trainer(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "trainer", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_this_environment_lacks_hydra() -> None:
    assert importlib.util.find_spec("hydra") is None


@pytest.mark.parametrize("name", sorted(set(CAPABILITIES) - {"sft"}))
def test_every_capability_has_help_without_the_packages_of_its_work(name: str) -> None:
    done = trainer(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


@pytest.mark.parametrize("name", ["train", "estimate"])
def test_a_missing_package_is_named_with_the_way_to_it(name: str) -> None:
    done = trainer(name, "--recipe", str(RECIPE))
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs hydra" in done.stderr
    assert f".venv-trainer/bin/python -m trainer {name}" in done.stderr
    assert "memloop-trainer[rl]" in done.stderr
    assert "Traceback" not in done.stderr


def test_tiny_rows_are_written_for_training_and_held_out(tmp_path: Path) -> None:
    done = trainer("data", "tiny-rows", "--loop", "memagent", "--out", str(tmp_path), "--rows", "4", "--held-out", "2")
    assert done.returncode == 0, done.stderr
    assert '"rows": {"train": 4, "held_out": 2}' in done.stdout
    assert {file.name for file in tmp_path.iterdir()} == {"memagent-train.parquet", "memagent-held_out.parquet"}
