"""Runs a recipe on verl: on a Ray of this machine, or on the cluster that ``RAY_ADDRESS`` names.

``ray job submit`` sets that variable for the job.
"""

# omegaconf and verl are largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
from __future__ import annotations

import os
from typing import Any, cast

from omegaconf import DictConfig, open_dict

from trainer.rollout.check_checkpoint import check_checkpoint
from trainer.rollout.check_cluster import check_cluster
from trainer.rollout.check_machine import check_machine
from trainer.rollout.check_rows import check_rows
from trainer.rollout.consistency import contradictions
from trainer.rollout.placement import Demand
from trainer.rollout.recipe import Composed

_OF_A_NEW_RAY = ("num_cpus", "num_gpus", "include_dashboard", "object_store_memory")
"""Options that Ray accepts when it starts, and rejects when it joins a cluster."""


def train(recipe: Composed) -> None:
    """Train to the end. Resumes from the last checkpoint in ``trainer.default_local_dir``, if there is one, or from the
    newest in ``memloop.checkpoints``.

    Raises RayTaskError when a process fails.
    """
    os.environ.update(recipe.environment)  # before verl is imported: it chooses its platform then
    import ray
    from verl.trainer.main_ppo import run_ppo

    from trainer.rollout.task_runner import LoopTaskRunner

    if os.environ.get("RAY_ADDRESS"):
        join_cluster(recipe.config)
    else:
        count_cpus(recipe.config)
    run_ppo(recipe.config, task_runner_class=cast(Any, ray).remote(LoopTaskRunner))


def preflight(recipe: Composed) -> list[str]:
    """Return every reason why the run cannot begin: its rows, its checkpoint, the machine or the cluster. Takes
    nothing.
    """
    cluster = check_cluster(recipe) if os.environ.get("RAY_ADDRESS") else ()
    return [*check_rows(recipe), *check_checkpoint(recipe), *check_machine(recipe), *cluster]


def join_cluster(config: DictConfig) -> None:
    """Drop the recipe's options for a Ray of its own when joining an existing cluster."""
    with open_dict(config):
        for name in _OF_A_NEW_RAY:
            config.ray_kwargs.ray_init.pop(name, None)


def count_cpus(config: DictConfig) -> None:
    """Give a Ray of this machine all the logical CPUs that verl places: they reserve no core."""
    chosen: Any = config.ray_kwargs.ray_init
    if chosen.num_cpus is None:
        chosen.num_cpus = max(os.cpu_count() or 1, Demand.of(config).cpus(1))


def check(recipe: Composed) -> None:
    """Check for contradictions, and run verl's own check of the configuration; needs no accelerator.

    Raises AssertionError or ValueError with the fault.
    """
    if reasons := contradictions(recipe):
        raise ValueError("; ".join(reasons))
    os.environ.update(recipe.environment)
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    config = recipe.config
    validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    for part in (config.actor_rollout_ref.rollout, config.algorithm):
        omega_conf_to_dataclass(part)
