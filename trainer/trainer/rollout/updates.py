"""verl's synchronous trainer with a fixed number of optimizer steps for each batch of rollouts.

verl cuts a batch into mini-batches of a fixed number of rows. A loop's rollout has as many rows as the document has
chunks, so long documents would mean more optimizer steps. The published runs fix the number of steps, and so does this:
the rows of a batch are filled up to a multiple (with rows that carry no loss) and cut into equal parts.
"""

# verl is largely untyped; values that reach our own code are typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false
from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import ray
import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.plugin.platform import get_platform
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.metric import reduce_metrics
from verl.utils.py_functional import rename_dict
from verl.utils.tensordict_utils import assign_non_tensor_stack
from verl.workers.utils.padding import response_to_nested

from trainer.rollout.advantages import Rows, advantages_of, filled, trained_mask
from trainer.rollout.curves import Curves
from trainer.rollout.group_filter import BoundedReplayBuffer
from trainer.rollout.latest import repair_tracker
from trainer.rollout.order import PromptNames, row_order
from trainer.rollout.placing import BoundedPools
from trainer.rollout.settings import LoopSettings
from trainer.rollout.step_metrics import step_metrics

NAME = "memloop"
"""The value of ``trainer.v1.trainer_mode``."""


@register_trainer(NAME)
class LoopTrainer(PPOTrainerSync):
    """Alternates rollouts and updates; see the module."""

    def __init__(self, config: Any) -> None:
        self.settings = LoopSettings.model_validate(OmegaConf.to_container(config.memloop))
        self._names = PromptNames()
        self._measured = dict[str, Any]()
        self._curves = Curves(Path(config.trainer.default_local_dir).absolute())
        super().__init__(config)

    def _build_replay_buffer(self) -> Any:
        self.trainer_mode = "sync"  # verl's own mode names decide whether rollouts run ahead of the updates
        if not self.config.algorithm.filter_groups.enable:
            return super()._build_replay_buffer()
        prompts, chosen = self.config.data.train_batch_size, self.config.algorithm.filter_groups
        sampler = self.config.trainer.v1.sampler
        return BoundedReplayBuffer(
            max_dropped=chosen.max_num_gen_batches * prompts,
            trainer_mode=self.trainer_mode,
            trainer_config=self.config.trainer.v1.get(self.trainer_mode, {}),
            max_off_policy_threshold=sampler.max_off_policy_threshold,
            max_off_policy_strategy=sampler.max_off_policy_strategy,
            sampler_kwargs=sampler.sampler_kwargs,
            refill_fn=self._add_prompts_to_generate,
            train_batch_size=prompts,
            max_inflight_gen_batches=chosen.max_inflight_gen_batches,
        )

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        spec, limit_s = self.resource_pool_manager.resource_pool_spec, self.settings.placement_timeout_s
        self.resource_pool_manager = BoundedPools(resource_pool_spec=spec, mapping=self.mapping, limit_s=limit_s)
        if get_platform().device_name == "cpu":
            from trainer.rollout.cpu.worker import CpuWorker  # no accelerator's process needs it

            self.role_worker_mapping = {role: ray.remote(CpuWorker) for role in self.role_worker_mapping}

    def _fetch_one_gen_batch(self) -> TensorDict:
        """Fetch prompts, named by step and number (:mod:`trainer.rollout.order`)."""
        fetched: Any = super()._fetch_one_gen_batch()
        assign_non_tensor_stack(fetched, "uid", self._names.next(self.global_steps, len(fetched)))
        return fetched

    def _balance_batch(self, batch: KVBatchMeta, metrics: Any, *args: Any, **options: Any) -> KVBatchMeta:
        """Order the rows by their names, then balance as verl does."""
        batch.reorder(row_order(batch.keys))
        return super()._balance_batch(batch, metrics, *args, **options)

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        self._multiple = dp_size * self.settings.updates
        return self._multiple

    def _load_checkpoint(self) -> None:
        """Load the newest checkpoint, after fetching it from the object storage if that holds a newer one."""
        if url := self.settings.checkpoints:
            from trainer.rollout.kept import prepare  # other runs do not need the storage's library

            folder = Path(self.config.trainer.default_local_dir).absolute()
            prepare(url, folder, resume_mode=self.config.trainer.resume_mode)
        repair_tracker(Path(self.config.trainer.default_local_dir).absolute())
        super()._load_checkpoint()
        self._curves.resume(self.global_steps)

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        """Compute advantages by our objectives, with one reward per rollout; verl's would use one per row."""
        fields = ["response_mask", "rm_scores", "extra_fields"]
        part = batch.partition_id or "train"
        data: Any = tq.kv_batch_get(keys=batch.keys, partition_id=part, select_fields=fields)
        nested = data["response_mask"]
        facts = data.pop("extra_fields").tolist()
        padded = data.to_padded_tensor()
        mask = padded["response_mask"]
        rows = Rows(batch.keys, facts, padded["rm_scores"].sum(-1), mask.float())
        real = torch.tensor([not tag.get("is_padding", False) for tag in batch.tags])
        metrics.update(step_metrics(rows, real))
        advantages = response_to_nested(advantages_of(rows, self.settings), nested)
        in_loss = trained_mask(rows, self.settings)
        self._in_loss = {key for key, row in zip(batch.keys, in_loss, strict=True) if row.any()}
        trained = response_to_nested(in_loss.to(padded["response_mask"].dtype), nested)
        masks = {"response_mask": trained, "loss_mask": trained.clone()}  # one for the loss, one for its mean
        output = TensorDict({"advantages": advantages, "returns": advantages.clone(), **masks}, batch_size=len(batch))
        return tq.kv_batch_put(keys=batch.keys, partition_id=part, fields=output)

    def _save_checkpoint(self) -> None:
        """Save, after the step's curves: a run that dies before it logs the step goes on behind it."""
        self._curves.add(self.global_steps, self._measured)
        super()._save_checkpoint()

    def _compute_metrics(self, batch: Any, metrics: Any, timing_raw: Any, global_steps: int, epoch: int) -> None:
        """Compute verl's metrics, then extend the run's curves."""
        super()._compute_metrics(batch, metrics, timing_raw, global_steps, epoch)
        self._curves.add(global_steps, metrics)

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        actor = self.config.actor_rollout_ref.actor
        trained = self._live(batch, metrics) if self.settings.live_rows_only else batch
        rows = len(trained) // self.settings.updates
        orders: dict[str, Any] = cast(Any, trained.extra_info)
        orders.update(
            {
                "calculate_entropy": actor.calculate_entropy or actor.entropy_coeff != 0.0,
                "distillation_use_topk": False,
                "distillation_only": False,
                "global_batch_size": self._sequences(trained) / self.settings.updates,
                "mini_batch_size": rows,
                "epochs": actor.ppo_epochs,
                "seed": actor.data_loader_seed,
                "dataloader_kwargs": {"shuffle": actor.shuffle},
                "temperature": self.config.actor_rollout_ref.rollout.temperature,
            }
        )
        measured = rename_dict(self.actor_rollout_wg.update_actor(trained)["metrics"], "actor/")
        measured["perf/mfu/actor"] = measured.pop("actor/mfu")
        metrics.update(reduce_metrics(measured))
        self._measured = dict(metrics)
        return batch

    def _sequences(self, batch: KVBatchMeta) -> int:
        """Count the rows in the loss: a sequence mean divides by them, and not by rows that fill a batch up."""
        return max(1, sum(key in self._in_loss for key in batch.keys))

    def _live(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        """Return the rows with an advantage, filled up with others to the size that the update's parts need."""
        part = batch.partition_id or "train"
        data: Any = tq.kv_batch_get(keys=batch.keys, partition_id=part, select_fields=["advantages"])
        live: list[bool] = data.to_padded_tensor()["advantages"].ne(0).any(-1).tolist()
        metrics["memloop/live_rows"] = float(sum(live))
        return batch.select_keys(filled(batch.keys, live, self._multiple))
