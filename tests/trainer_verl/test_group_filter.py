"""Dynamic sampling ends: groups of equal rewards are replaced up to a bound, and beyond it trained on."""

from random import Random
from typing import Any, cast

import pytest

from trainer.rollout.group_filter import DROPPED, SURPLUS, BoundedReplayBuffer

PROMPTS = 2


class HeldBuffer(BoundedReplayBuffer):
    """A buffer whose groups are kept here instead of in the queue; each new prompt's group is finished at once."""

    def __init__(self, *, max_dropped: int, rewards: list[float | None]) -> None:
        super().__init__(
            max_dropped=max_dropped,
            trainer_mode="sync",
            trainer_config=cast(Any, {}),
            max_off_policy_threshold=None,
            max_off_policy_strategy="drop",
            sampler_kwargs=cast(Any, {}),
            poll_interval=0,
            refill_fn=self.roll_out,
            train_batch_size=PROMPTS,
            max_inflight_gen_batches=2,
        )
        self._rewards = iter(rewards)
        self.made = self.most_at_a_time = 0

    def roll_out(self, prompts: int) -> int:
        """Finish groups with the next rewards: a number where all rollouts earned it, None where they differ."""
        self.most_at_a_time = max(self.most_at_a_time, prompts)
        for _ in range(prompts):
            uid = f"g{self.made}"
            self.made += 1
            self.finished_keys["train"].add(uid)
            self.partitions["train"][f"{uid}_0_0"] = {}
            self._dapo_classification_cache["train"][uid] = next(self._rewards)
        return prompts

    def _sync_metadata_from_transfer_queue(self) -> None:
        pass

    def _clear_groups(self, partition_id: str, uids: set[str]) -> None:
        self.finished_keys[partition_id] -= uids
        for uid in uids:
            del self.partitions[partition_id][f"{uid}_0_0"]

    def _materialize_batch(self, partition_id: str, selected_prompt_uids: list[str], partition_snapshot: Any) -> Any:
        del partition_snapshot
        self.finished_keys[partition_id] -= set(selected_prompt_uids)
        return sorted(selected_prompt_uids)


def step(buffer: HeldBuffer) -> tuple[list[str], dict[str, Any]]:
    buffer.roll_out(PROMPTS)
    batch, metrics = buffer.sample(global_steps=1, partition_id="train", batch_size=PROMPTS)
    return cast(list[str], batch), metrics


def test_groups_of_equal_rewards_are_replaced() -> None:
    batch, metrics = step(HeldBuffer(max_dropped=20, rewards=[1.0, None, 0.0, None, None]))
    assert batch == ["g1", "g3"]
    assert metrics[DROPPED] == 2


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_policy_that_is_always_alike_still_fills_every_batch(reward: float) -> None:
    buffer = HeldBuffer(max_dropped=4, rewards=[reward] * 40)
    for _ in range(2):  # the second step may drop as many again
        batch, metrics = step(buffer)
        assert len(batch) == PROMPTS
        assert metrics[DROPPED] == 4


def test_a_full_batch_at_the_bound_has_the_groups_with_a_gradient_first() -> None:
    batch, metrics = step(HeldBuffer(max_dropped=1, rewards=[1.0, 1.0, 1.0, None, None]))
    assert batch == ["g1", "g3"]
    assert metrics[DROPPED] == 1
    assert metrics[SURPLUS] == 1


def test_what_is_left_over_is_counted_and_not_kept_for_the_next_step() -> None:
    buffer = HeldBuffer(max_dropped=20, rewards=[1.0, None, None, None, None, None])
    batch, metrics = step(buffer)
    assert batch == ["g1", "g2"]
    assert metrics[SURPLUS] == 1
    assert buffer.finished_keys["train"] == set()


def test_two_prompts_are_rolled_out_for_each_dropped_one() -> None:
    buffer = HeldBuffer(max_dropped=20, rewards=[1.0, 0.0, None, None, None, None])
    batch, metrics = step(buffer)
    assert (batch, buffer.made, metrics[SURPLUS]) == (["g2", "g3"], 6, 2)


def test_no_more_prompts_are_rolled_out_at_a_time_than_the_recipe_allows() -> None:
    buffer = HeldBuffer(max_dropped=20, rewards=[1.0] * 6 + [None] * 4)
    step(buffer)
    assert buffer.most_at_a_time == 4  # two batches, though six prompts were dropped


class SlowBuffer(HeldBuffer):
    """Finishes one group at each poll, in an order of its own."""

    def __init__(self, *, order: Random, rewards: dict[int, float | None]) -> None:
        super().__init__(max_dropped=20, rewards=[])
        self._order, self._of_group = order, rewards

    def roll_out(self, prompts: int) -> int:
        for _ in range(prompts):
            self.running_keys["train"].add(f"g{self.made}")
            self.made += 1
        return prompts

    def _sync_metadata_from_transfer_queue(self) -> None:
        running = sorted(self.running_keys["train"])
        if running:
            uid = self._order.choice(running)
            self.running_keys["train"].remove(uid)
            self.finished_keys["train"].add(uid)
            self.partitions["train"][f"{uid}_0_0"] = {}
            self._dapo_classification_cache["train"][uid] = self._of_group[int(uid[1:])]


def test_batch_and_number_of_prompts_do_not_depend_on_which_group_finishes_first() -> None:
    rewards: dict[int, float | None] = {number: 1.0 if number % 3 else None for number in range(100)}
    found = set[tuple[tuple[str, ...], int]]()
    for seed in range(8):
        buffer = SlowBuffer(order=Random(seed), rewards=rewards)
        found.add((tuple(step(buffer)[0]), buffer.made))
    assert found == {(("g0", "g3"), 4)}
