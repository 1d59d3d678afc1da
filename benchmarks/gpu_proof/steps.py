"""The steps of a proof on a GPU, in their order, each with its time limit: 15 minutes at most together."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TINY: Final = "services/inference/models/memloop-tiny"
RECIPE: Final = "trainer/recipes/tiny-memagent-gpu.yaml"
_ADAPTERS: Final = {
    "actor_rollout_ref.model.lora_rank": 8,
    "actor_rollout_ref.model.lora_alpha": 16,
    "actor_rollout_ref.model.lora.merge": "true",
    "actor_rollout_ref.actor.optim.lr": 2.0e-3,
}


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


def steps(folder: Path) -> tuple[Step, ...]:
    """Return the steps. They write into the folder; what is large goes below its ``work``."""
    here, work = sys.executable, folder / "work"
    probes, trainer, needs = (here, "-m", "benchmarks.gpu_proof.probes"), (here, "-m", "trainer"), ("verl", "vllm")
    first, adapted = work / "first", work / "lora"
    rows = (*trainer, "data", "tiny-rows", "--loop", "memagent", "--rows", "512", "--out", str(work))
    export = (*trainer, "export", "--base", TINY, "--profile", "tiny")
    return (
        Step("packages", here, [(*probes, "packages")], 90, ("torch", *needs, "ray")),
        Step("logits", here, [(*probes, "logits")], 100, ("torch", "verl")),
        Step("two GRPO steps", here, [rows, _train(work, first, steps=2)], 210, needs, (RECIPE, TINY)),
        Step("resume", here, [_train(work, first, steps=3)], 120, needs, (RECIPE,)),
        Step(
            "export",
            here,
            [(*export, "--checkpoint", str(first / "global_step_3"), "--out", str(work / "exported"))],
            60,
            needs,
            (TINY,),
        ),
        Step("adapters", here, [_train(work, adapted, steps=1, changes=_ADAPTERS)], 120, needs, (RECIPE,)),
        Step("six steps", here, [_curve(folder, work)], 200, needs, (RECIPE,)),
    )


def _train(
    work: Path, checkpoints: Path, *, steps: int, changes: Mapping[str, object] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return a run of 16 prompts of 4 rollouts. Attention is Triton's: the packed vLLM has no other."""
    values = {
        "data.train_files": work / "memagent-train.parquet",
        "data.val_files": work / "memagent-held_out.parquet",
        "data.train_batch_size": 16,
        "actor_rollout_ref.rollout.n": 4,
        "actor_rollout_ref.rollout.enforce_eager": "true",
        "+actor_rollout_ref.rollout.engine_kwargs.vllm.attention_backend": "TRITON_ATTN",
        "trainer.total_training_steps": steps,
        "trainer.val_before_train": "false",
        "trainer.test_freq": -1,
        "trainer.save_freq": 1,
        "trainer.logger": "[console,file]",
        "trainer.default_local_dir": checkpoints,
        "memloop.placement_timeout_s": 60,
        **changes,
    }
    overrides = (f"{key}={value}" for key, value in values.items())
    return (sys.executable, "-m", "trainer", "train", "--recipe", RECIPE, *overrides)


def _curve(folder: Path, work: Path) -> tuple[str, ...]:
    """Return six steps of the CPU recipe's batch, with its figures beside the results."""
    changes = {
        "data.train_batch_size": 16,
        "actor_rollout_ref.rollout.n": 8,
        "memloop.updates": 1,
        "trainer.save_freq": -1,
        "environment.VERL_FILE_LOGGER_PATH": folder / "six-steps.jsonl",
    }
    return _train(work, work / "six", steps=6, changes=changes)
