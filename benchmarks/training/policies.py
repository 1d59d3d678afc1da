"""Trains the two compared policies: a start under supervision, and the same model after GRPO on verl."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.training.reading import Loop
from memloop.wire.checkpoint import RECORD

_RECIPES = Path("trainer/recipes")
TRAINER = Path(".venv-trainer/bin/python")
"""The environment of verl and Ray; supervised training runs in the current environment."""
_HELD_OUT = 128
_HELD_OUT_SHARE = "val-core/memloop/tiny/{loop}/acc/mean@1"
_SAMPLED_SHARE = "memloop/reward"

Curve = tuple[tuple[int, float], ...]
"""Step, and a share from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a start is trained (``trainer.tiny train --budget``, from the checkpoint ``base``), and the run's recipe.

    ``memreread`` reads documents of two hops, whose facts stand in the wrong order for one pass.
    """

    budget: str
    recipe: Path
    base: Path | None = None
    loop: Loop = "memagent"


_SHIPPED = Path("services/inference/models/memloop-tiny")
_OBJECTIVES = ("gspo", "dr-grpo", "amortised")

PLANS: Mapping[str, Plan] = {
    "early": Plan("early", _RECIPES / "tiny-memagent-early-cpu.yaml"),
    "hasty": Plan("hasty", _RECIPES / "tiny-memagent-hasty-cpu.yaml", _SHIPPED),
    **{
        f"hasty-{name}": Plan("hasty", _RECIPES / f"tiny-memagent-hasty-{name}-cpu.yaml", _SHIPPED)
        for name in _OBJECTIVES
    },
    "two-hop-rea-grpo": Plan("hasty", _RECIPES / "tiny-memreread-hasty-cpu.yaml", _SHIPPED, "memreread"),
    "two-hop-amortised": Plan("hasty", _RECIPES / "tiny-memreread-hasty-amortised-cpu.yaml", _SHIPPED, "memreread"),
}
"""``early`` confuses facts, and so loses them in long documents; ``hasty`` overlooks facts, and keeps what it has."""


@dataclass(frozen=True, slots=True)
class Run:
    """A GRPO run: its last checkpoint in Hugging Face form, and shares of right answers by step.

    ``held_out`` are greedy answers to held-out questions, at verl's validation steps; ``sampled`` the rollouts' own.
    """

    exported: Path
    held_out: Curve
    sampled: Curve


def supervised(plan: Plan, folder: Path) -> Path:
    """Train the start checkpoint; a finished one is reused."""
    out = folder / plan.budget
    if not (out / "training.json").is_file():
        start = ("--start", str(plan.base)) if plan.base else ()
        options = ("--budget", plan.budget, "--device", "cpu", "--out", str(out), *start)
        _run([sys.executable, "-m", "trainer.tiny", "train", *options])
    return out


def reinforced(plan: Plan, start: Path, folder: Path, *, steps: int, seed: int, changes: Sequence[str] = ()) -> Run:
    """Run GRPO for ``steps`` steps on documents of the training length; a finished run is reused.

    ``changes`` are of the recipe, as ``KEY=VALUE``. Raises CalledProcessError when a command fails.
    """
    log, exported = folder / f"grpo-{seed}.jsonl", folder / f"exported-{seed}"
    if not (exported / RECORD).is_file():
        checkpoint = _trained(plan, start, folder, log, steps=steps, seed=seed, changes=changes)
        _trainer("export", "--checkpoint", checkpoint, "--base", start, "--profile", "tiny", "--out", exported)
    return Run(
        exported, held_out=curve_of(log, _HELD_OUT_SHARE.format(loop=plan.loop)), sampled=curve_of(log, _SAMPLED_SHARE)
    )


def _trained(
    plan: Plan, start: Path, folder: Path, log: Path, *, steps: int, seed: int, changes: Sequence[str]
) -> Path:
    """Return the last checkpoint in verl's own form."""
    rows, out = folder / f"rows-{seed}", folder / f"grpo-{seed}"
    _trainer("data", *("tiny-rows", "--loop", plan.loop, "--out", rows, "--held-out", _HELD_OUT, "--seed", seed))
    overrides: dict[str, object] = {
        "actor_rollout_ref.model.path": start,
        "data.train_files": rows / f"{plan.loop}-train.parquet",
        "data.val_files": rows / f"{plan.loop}-held_out.parquet",
        "data.seed": seed,
        "trainer.total_training_steps": steps,
        "trainer.save_freq": steps,
        "trainer.default_local_dir": out,
        "trainer.logger": "[console,file]",
    }
    own = [f"{key}={value}" for key, value in overrides.items()]
    _trainer("train", "--recipe", plan.recipe, *own, *changes, environment={"VERL_FILE_LOGGER_PATH": str(log)})
    return out / f"global_step_{steps}"


def curve_of(log: Path, figure: str) -> Curve:
    """Extract a figure from verl's log at the steps that have it."""
    steps = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    return tuple((int(each["step"]), float(each["data"][figure])) for each in steps if figure in each["data"])


def _trainer(command: str, *arguments: object, environment: Mapping[str, str] | None = None) -> None:
    _run([str(TRAINER), "-m", "trainer", command, *map(str, arguments)], environment)


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})})
