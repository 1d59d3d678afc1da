"""Dynamic sampling with a bound: verl's replay buffer, which replaces groups of equal rewards without end.

verl ignores ``algorithm.filter_groups.max_num_gen_batches`` in this trainer, so that a policy that is right everywhere
would roll out for ever. Here a step drops at most that many batches of prompts; what is alike beyond it is trained on,
at no gradient.
"""

# verl is largely untyped; values that reach our own code are typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false
from __future__ import annotations

from collections import Counter
from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from trainer.objectives.dapo import METRIC, dropped


class BoundedReplayBuffer(ReplayBuffer):
    """A replay buffer that drops at most ``max_dropped`` groups of prompts in a step."""

    def __init__(self, *, max_dropped: int, **options: Any) -> None:
        super().__init__(filter_groups_metric=METRIC, gen_batch_size=1, **options)
        self._most = max_dropped
        self._dropped = 0

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Any:
        """See verl's; the count of dropped groups starts again."""
        self._dropped = 0
        return super().sample(global_steps, partition_id, batch_size)

    def _dapo_filtered_keys(self, partition_id: str) -> tuple[set[str], Counter[float]]:
        alike, rewards = super()._dapo_filtered_keys(partition_id)
        chosen = dropped(sorted(alike), dropped_before=self._dropped, most=self._most)
        if len(chosen) < len(alike):
            rewards = Counter[float]()  # of all that are alike: verl's table would show groups that stay
        return set(chosen), rewards

    def _evict_terminal_groups(self, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
        self._dropped += len(eviction_reasons[1])
        return super()._evict_terminal_groups(global_steps, partition_id, eviction_reasons)
