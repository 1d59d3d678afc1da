"""Small runs on real verl and real Ray on the CPU, and what they wrote."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from memloop.profiles import load_profile
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.tiny_rows import Hardness, tiny_rows
from trainer.tiny.prose import book

RECIPES = Path("trainer/recipes")
PROMPTS, ROLLOUTS = 4, 4


def write_rows(file: Path, count: int, *, seed: int = 0) -> None:
    """Documents of two chunks for MemAgent."""
    rows = tiny_rows(Random(seed), "memagent", load_profile("tiny"), book("train"), Hardness(chunks=2))
    write_parquet(islice(rows, count), file, schemas.READING)


def command(recipe: str, folder: Path, *, steps: int, changes: Mapping[str, object]) -> list[str]:
    """The command of a run of four prompts by four rollouts, on the folder's ``rows.parquet``."""
    overrides = {
        "data.train_files": folder / "rows.parquet",
        "data.val_files": folder / "rows.parquet",
        "data.train_batch_size": PROMPTS,
        "actor_rollout_ref.actor.ppo_mini_batch_size": PROMPTS,
        "actor_rollout_ref.rollout.n": ROLLOUTS,
        "trainer.total_training_steps": steps,
        "trainer.val_before_train": "false",
        "trainer.test_freq": -1,
        "trainer.save_freq": steps,
        "trainer.default_local_dir": folder / "checkpoints",
        "trainer.logger": "[file]",
        **changes,
    }
    train = [sys.executable, "-m", "trainer", "train", "--recipe", str(RECIPES / recipe)]
    return [*train, *(f"{key}={value}" for key, value in overrides.items())]


def start(
    arguments: list[str], metrics: Path, output: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen[bytes]:
    """Start the command; its figures go to one file and its words to another."""
    own = {"RAY_USAGE_STATS_ENABLED": "0", "VERL_FILE_LOGGER_PATH": str(metrics)}
    with output.open("wb") as words:
        return subprocess.Popen(
            [*arguments, f"environment.VERL_FILE_LOGGER_PATH={metrics}"],
            env={**os.environ, **own, **environment},
            stdout=words,
            stderr=subprocess.STDOUT,
        )


def finish(process: subprocess.Popen[bytes], output: Path, *, timeout_s: float) -> None:
    """Wait for the run's end. Raises AssertionError with its last words when it failed."""
    assert process.wait(timeout_s) == 0, output.read_text("utf-8", "replace")[-4000:]


def steps_of(metrics: Path) -> dict[int, dict[str, Any]]:
    """The figures of each complete step in a file of metrics."""
    lines = metrics.read_bytes().splitlines(keepends=True) if metrics.is_file() else []
    entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return {entry["step"]: entry["data"] for entry in entries if "actor/grad_norm" in entry["data"]}
