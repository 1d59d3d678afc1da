"""Dynamic sampling with a bound, in waves: groups of equal rewards are replaced by others, the same in every run.

verl's own replay buffer replaces groups as they finish, so that timing decides how many prompts a step takes; and it
ignores ``algorithm.filter_groups.max_num_gen_batches`` in this trainer, so that a policy that is right everywhere would
roll out for ever. Here a step looks at its groups when all are finished, replaces the equal ones in the order of their
names, and drops at most that many batches of prompts; equal groups beyond it are trained on, at no gradient.
"""

# verl is largely untyped; values that reach our own code are typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false
from __future__ import annotations

import time
from collections import Counter
from typing import Any

from verl.trainer.ppo.v1.replay_buffer import DAPO_FILTERED_REWARD_COUNTS_KEY, ReplayBuffer

from trainer.objectives.dapo import METRIC, dropped

DROPPED = "training/filter_groups/evicted_samples"
SURPLUS = "training/filter_groups/discarded_surplus_samples"


class BoundedReplayBuffer(ReplayBuffer):
    """A replay buffer that drops at most ``max_dropped`` groups of prompts in a step."""

    def __init__(self, *, max_dropped: int, **options: Any) -> None:
        super().__init__(filter_groups_metric=METRIC, gen_batch_size=1, **options)
        self._most = max_dropped

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Any:
        """Return the step's rows, and the counts of groups that it dropped and of those that it had left over.

        Two prompts are rolled out for each dropped group, at most ``max_inflight_gen_batches`` batches at a time.
        Raises RuntimeError when every group failed.
        """
        if partition_id == "val":
            return super().sample(global_steps, partition_id, batch_size)
        rewards = Counter[float]()
        while True:
            alike = self._finished(partition_id)
            chosen = dropped(sorted(alike), dropped_before=rewards.total(), most=self._most)
            rewards.update(alike[group] for group in chosen)
            self._clear_groups(partition_id, set(chosen))
            held: set[str] = self.finished_keys[partition_id] | self.failure_keys[partition_id]
            missing = batch_size - len(held)
            if missing <= 0:
                break
            self._roll_out(max(missing, 2 * len(chosen)))
        counts = {DROPPED: rewards.total(), SURPLUS: -missing, DAPO_FILTERED_REWARD_COUNTS_KEY: dict(rewards)}
        order = sorted(held - alike.keys()) + sorted(held & alike.keys())
        return self._rows(partition_id, order, batch_size), counts

    def _finished(self, partition_id: str) -> dict[str, float]:
        """Wait until no group is rolling out; return the groups of equal rewards with these."""
        polled = time.time()
        while True:
            self._sync_metadata_from_transfer_queue()
            if not self.pending_keys[partition_id] | self.running_keys[partition_id]:
                break
            polled = self._wait_for_next_poll(partition_id, polled)
        alike, _ = self._dapo_filtered_keys(partition_id)
        rewards = self._dapo_classification_cache[partition_id]
        return {group: rewards[group] or 0.0 for group in alike}

    def _roll_out(self, prompts: int) -> None:
        refill: Any = self.refill_fn
        refill(min(prompts, self.max_inflight_gen_batches * (self.train_batch_size or 1)))

    def _rows(self, partition_id: str, groups: list[str], count: int) -> Any:
        """Return the rows of the first groups, and clear the others."""
        self._clear_groups(partition_id, set(groups[count:]))
        rows = self._materialize_batch(partition_id, groups[:count], dict(self.partitions[partition_id]))
        if not len(rows):
            raise RuntimeError("no rollout of this step ended without an error: the log names their errors")
        return rows
