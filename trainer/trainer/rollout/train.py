"""Runs a recipe on verl: on a Ray of this machine, or on the cluster that ``RAY_ADDRESS`` names."""

# verl is untyped in large part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
from __future__ import annotations

import os

from trainer.rollout.recipe import Composed


def train(recipe: Composed) -> None:
    """Train to the end. Goes on from the last checkpoint in ``trainer.default_local_dir``, if there is one.

    Raises RayTaskError when a process fails.
    """
    os.environ.update(recipe.environment)  # before verl is imported: it chooses its platform then
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo

    run_ppo(recipe.config, task_runner_class=TaskRunnerV1)


def check(recipe: Composed) -> None:
    """Have verl check the configuration as it does before a run; needs no accelerator.

    Raises AssertionError or ValueError when verl finds it impossible.
    """
    os.environ.update(recipe.environment)
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    config = recipe.config
    validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
