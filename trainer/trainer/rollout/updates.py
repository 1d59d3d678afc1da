"""The synchronous trainer of verl with a fixed number of optimizer steps for each batch of rollouts.

verl cuts a batch into mini-batches of so many rows. A loop's rollout has as many rows as the document has chunks, so
long documents would mean more optimizer steps. The published runs fix the number of steps, and so does this: the rows
of a batch are filled up to a multiple (with rows that carry no loss) and cut into equal parts.
"""

# verl is untyped in large part; what crosses to our own code is typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false
from __future__ import annotations

from typing import Any, cast

import ray
from omegaconf import OmegaConf
from transfer_queue import KVBatchMeta
from verl.plugin.platform import get_platform
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.metric import reduce_metrics
from verl.utils.py_functional import rename_dict

from trainer.rollout.settings import LoopSettings

NAME = "memloop"
"""What ``trainer.v1.trainer_mode`` says."""


@register_trainer(NAME)
class LoopTrainer(PPOTrainerSync):
    """Rollouts and updates take turns; see the module."""

    def __init__(self, config: Any) -> None:
        self.settings = LoopSettings.model_validate(OmegaConf.to_container(config.memloop))
        super().__init__(config)

    def _build_replay_buffer(self) -> Any:
        self.trainer_mode = "sync"  # verl tells by its own names whether rollouts run ahead of the updates
        return super()._build_replay_buffer()

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        if get_platform().device_name == "cpu":
            from trainer.rollout.cpu.worker import CpuWorker  # no accelerator's process needs it

            self.role_worker_mapping = {role: ray.remote(CpuWorker) for role in self.role_worker_mapping}

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        return dp_size * self.settings.updates

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        actor = self.config.actor_rollout_ref.actor
        rows = len(batch) // self.settings.updates
        orders: dict[str, Any] = cast(Any, batch.extra_info)
        orders.update(
            {
                "calculate_entropy": actor.calculate_entropy or actor.entropy_coeff != 0.0,
                "distillation_use_topk": False,
                "distillation_only": False,
                "global_batch_size": rows,
                "mini_batch_size": rows,
                "epochs": actor.ppo_epochs,
                "seed": actor.data_loader_seed,
                "dataloader_kwargs": {"shuffle": actor.shuffle},
                "temperature": self.config.actor_rollout_ref.rollout.temperature,
            }
        )
        told = rename_dict(self.actor_rollout_wg.update_actor(batch)["metrics"], "actor/")
        told["perf/mfu/actor"] = told.pop("actor/mfu")
        metrics.update(reduce_metrics(told))
        return batch
