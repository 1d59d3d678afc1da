"""verl's training process on a CPU: opens its process group as gloo before verl does.

verl names a group's backends for the CPU and for its device, and torch rejects the CPU named twice.
"""

# verl is largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportMissingTypeStubs=false
from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, cast

from torch import distributed
from verl.single_controller.base.decorator import Dispatch, register
from verl.workers.config.optimizer import FSDPOptimizerConfig
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

_EVERYWHERE = cast(Any, Dispatch).ONE_TO_ALL  # verl creates its members at run time


class CpuReference(TrainingWorker):
    """The reference policy as an untrained trainable one: verl pins the memory of other kinds for a GPU."""

    def __init__(self, config: Any) -> None:
        engine = replace(config.engine_config, forward_only=False)
        super().__init__(replace(config, engine_config=engine, optimizer_config=FSDPOptimizerConfig(lr=0.0)))


class CpuWorker(ActorRolloutRefWorker):
    """Actor, reference policy and the rollout's weights in one process."""

    ref_worker_cls = CpuReference

    @register(dispatch_mode=_EVERYWHERE)
    def init_model(self) -> None:
        """Build the models."""
        if not distributed.is_initialized():
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            distributed.init_process_group("gloo", rank=rank, world_size=size)
        super().init_model()
