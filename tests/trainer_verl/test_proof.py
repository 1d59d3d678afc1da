"""The GPU proof's own commands: its rows are made, and its runs are recipes that the preflight lets pass."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.gpu_proof.steps import Step, steps
from trainer.rollout.consistency import contradictions
from trainer.rollout.recipe import load_recipe

NAMES = ("two GRPO steps", "resume", "adapters", "six steps")


def step_of(folder: Path, name: str) -> Step:
    [found] = [step for step in steps(folder) if step.name == name]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_run_of_the_proof_is_a_recipe_without_contradictions(tmp_path: Path, name: str) -> None:
    [run] = [command for command in step_of(tmp_path, name).commands if "train" in command]
    place = run.index("--recipe") + 1
    assert contradictions(load_recipe(Path(run[place]), run[place + 1 :])) == []


def test_the_proofs_first_command_writes_the_rows_that_its_runs_read(tmp_path: Path) -> None:
    rows, run = step_of(tmp_path, "two GRPO steps").commands
    subprocess.run(rows, check=True, timeout=300)
    read = {
        value
        for key, _, value in (part.partition("=") for part in run)
        if key in ("data.train_files", "data.val_files")
    }
    assert len(read) == 2
    assert all(Path(file).is_file() for file in read)
