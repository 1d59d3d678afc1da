"""The process that trains: verl's, with our trainer registered. verl's other processes need not import the trainer."""

# verl is largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
from __future__ import annotations

import importlib
from typing import Any, cast

import transfer_queue as queue
from omegaconf import DictConfig
from verl.trainer.main_ppo import TaskRunnerV1

from trainer.rollout.placing import placed_within

_NOT_AN_ACTOR: Any = cast(Any, TaskRunnerV1).__ray_actor_class__
"""verl's class without Ray, which forbids inheriting from an actor's."""


class LoopTaskRunner(_NOT_AN_ACTOR):
    """Runs a recipe to the end. ``ray.remote`` makes it an actor."""

    def run(self, config: DictConfig) -> None:
        """Train. Raises what the run raises."""
        importlib.import_module("trainer.rollout.updates")
        with placed_within(config.memloop.placement_timeout_s, "the units of the transfer queue"):
            queue.init(config.transfer_queue)  # verl's own call then finds it there
        super().run(config)
