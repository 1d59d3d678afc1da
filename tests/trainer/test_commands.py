"""The trainer's command lines in an environment without verl, Hydra and Ray, as serving's is."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.__main__ import CAPABILITIES, main

RECIPE = Path("trainer/recipes/tiny-memagent-cpu.yaml")


Output = pytest.CaptureFixture[str]


def trainer(output: Output, *arguments: str) -> tuple[object, str, str]:
    """The status of the command in this process, what it printed, and its complaints."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = output.readouterr()
    return ended.value.code, printed.out, printed.err


def test_this_environment_lacks_hydra() -> None:
    assert importlib.util.find_spec("hydra") is None


@pytest.mark.parametrize("name", sorted(set(CAPABILITIES) - {"sft"}))
def test_every_capability_has_help_without_the_packages_of_its_work(name: str, capsys: Output) -> None:
    status, printed, complaints = trainer(capsys, name, "--help")
    assert (status, complaints) == (0, "")
    assert printed.startswith("usage: ")


@pytest.mark.parametrize("name", ["train", "estimate"])
def test_a_missing_package_is_named_with_the_way_to_it(name: str, capsys: Output) -> None:
    status, printed, complaints = trainer(capsys, name, "--recipe", str(RECIPE))
    assert (status, printed) == (2, "")
    assert "needs hydra" in complaints
    assert f".venv-trainer/bin/python -m trainer {name}" in complaints
    assert "memloop-trainer[rl]" in complaints


def test_tiny_rows_are_written_for_training_and_held_out(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trainer", "data", "tiny-rows", "--loop", "memagent", "--out", str(tmp_path)]
    command += ["--rows", "4", "--held-out", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"rows": {"train": 4, "held_out": 2}' in done.stdout
    assert {file.name for file in tmp_path.iterdir()} == {"memagent-train.parquet", "memagent-held_out.parquet"}
