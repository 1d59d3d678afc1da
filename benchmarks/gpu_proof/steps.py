"""The steps of a proof on a GPU, in their order, each with its time limit."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TINY: Final = "services/inference/models/memloop-tiny"
RECIPE: Final = "trainer/recipes/tiny-memagent-gpu.yaml"
_VARIANT: Final = "no speculation"
"""Random weights may repeat themselves, and guesses are then right more often than on text."""


@dataclass(frozen=True, slots=True)
class Step:
    """Commands that run one after the other, together at most ``limit_s`` seconds.

    ``needs`` are modules of ``python``, the environment of the step; without one of them the step is skipped. ``files``
    are what the commands read in the repository.
    """

    name: str
    python: str
    commands: Sequence[Sequence[str]]
    limit_s: float
    needs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def steps(folder: Path, *, trainer_python: str, shape: str) -> tuple[Step, ...]:
    """Return the steps. What they write goes into the folder; ``shape`` is the engine benchmark's."""
    here = sys.executable
    probes = (here, "-m", "benchmarks.gpu_proof.probes")
    return (
        Step("torch", here, [(*probes, "torch")], 120, ("torch",)),
        Step("transformers", here, [(*probes, "transformers")], 300, ("torch", "transformers"), (TINY,)),
        Step("vllm", here, [(*probes, "vllm")], 480, ("vllm",), (TINY,)),
        Step(
            "engine benchmark",
            here,
            [(here, "-m", "benchmarks.inference", "--shape", shape, "--documents", "1,8,64", "--variant", _VARIANT)],
            540,
            ("vllm",),
        ),
        Step(
            "two GRPO steps",
            trainer_python,
            [
                (trainer_python, "-m", "trainer", "data", "tiny-rows", "--rows", "64", "--out", str(folder)),
                (trainer_python, "-m", "trainer", "train", "--recipe", RECIPE, *_overrides(folder)),
            ],
            900,
            ("verl", "vllm"),
            (RECIPE, TINY),
        ),
    )


def _overrides(folder: Path) -> tuple[str, ...]:
    values = {
        "data.train_files": folder / "memagent-train.parquet",
        "data.val_files": folder / "memagent-held_out.parquet",
        "data.train_batch_size": 16,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 16,
        "actor_rollout_ref.rollout.n": 4,
        "trainer.total_training_steps": 2,
        "trainer.val_before_train": "false",
        "trainer.test_freq": -1,
        "trainer.save_freq": -1,
        "trainer.logger": "[console]",
        "trainer.default_local_dir": folder / "run",
    }
    return tuple(f"{key}={value}" for key, value in values.items())
