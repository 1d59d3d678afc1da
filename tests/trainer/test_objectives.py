"""Advantages and losses against figures worked out by hand."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer.objectives.amortised import amortised_advantages, amortised_mask
from trainer.objectives.dapo import (
    dropped,
    less_overlong,
    overlong_penalty,
    without_truncated,
)
from trainer.objectives.grpo import grpo_advantages
from trainer.objectives.published import Objective
from trainer.objectives.rea_grpo import outcome_advantages, rea_grpo_advantages, step_advantages
from trainer.objectives.rollouts import Rollouts
from trainer.rollout.settings import LoopSettings


def batch(rows: list[tuple[str, str, float, list[int]]]) -> Rollouts:
    """Rows of (rollout, prompt, reward, mask)."""
    return Rollouts.from_rows(
        session_ids=[row[0] for row in rows],
        group_ids=[row[1] for row in rows],
        rewards=torch.tensor([row[2] for row in rows]),
        mask=torch.tensor([row[3] for row in rows]),
    )


def close(found: Tensor, wanted: list[list[float]] | list[float]) -> None:
    torch.testing.assert_close(found, torch.tensor(wanted), atol=1e-5, rtol=0)


LONG_AND_SHORT = [
    ("a", "p", 1.0, [1, 1, 0]),
    ("a", "p", 1.0, [1, 0, 0]),
    ("a", "p", 1.0, [1, 1, 1]),
    ("b", "p", 0.0, [1, 1, 0]),
    ("c", "q", 0.5, [1, 0, 1]),
]


def test_a_rollout_of_many_turns_counts_once_in_the_mean_of_its_group() -> None:
    advantages = grpo_advantages(batch(LONG_AND_SHORT))
    # mean of p is (1 + 0) / 2, not (1 + 1 + 1 + 0) / 4
    close(advantages, [[0.5, 0.5, 0], [0.5, 0, 0], [0.5, 0.5, 0.5], [-0.5, -0.5, 0], [0, 0, 0]])


def test_plain_grpo_divides_by_the_groups_deviation() -> None:
    advantages = grpo_advantages(batch(LONG_AND_SHORT), normalise_by_std=True)
    # the sample's deviation of (1, 0): sqrt((0.25 + 0.25) / 1) = 0.707107
    close(advantages[:, 0], [0.707106, 0.707106, 0.707106, -0.707106, 0.0])


@given(reward=st.floats(-10, 10, width=32), size=st.integers(1, 64), other=st.floats(-10, 10, width=32))
def test_a_group_of_equal_rewards_teaches_exactly_nothing(reward: float, size: int, other: float) -> None:
    equal = [(f"{number}", "p", reward, [1]) for number in range(size)]
    rollouts = batch([*equal, ("x", "q", other, [1]), ("y", "q", reward, [1])])
    for by_deviation in (False, True):
        for found in (
            grpo_advantages(rollouts, normalise_by_std=by_deviation),
            amortised_advantages(
                rollouts,
                final=torch.ones(size + 2, dtype=torch.bool),
                train_final=True,
                normalise_by_std=by_deviation,
            ),
        ):
            assert not found[:size].any()
    steps = step_advantages([reward] * size, ["read"] * size, torch.zeros(size, dtype=torch.long))
    assert not steps.any()


@given(st.sampled_from([float("nan"), float("inf"), -float("inf")]), st.integers(0, 4))
def test_a_reward_that_is_no_number_names_its_rollout(reward: float, place: int) -> None:
    rows = [(f"run-{number}", "p", 0.5, [1]) for number in range(5)]
    rows[place] = (f"run-{place}", "p", reward, [1])
    with pytest.raises(ValueError, match=f"rollout run-{place} has the reward {reward}"):
        batch(rows)


def test_rows_may_come_in_any_order() -> None:
    order = [3, 1, 4, 0, 2]
    there = grpo_advantages(batch(LONG_AND_SHORT))
    mixed = grpo_advantages(batch([LONG_AND_SHORT[place] for place in order]))
    close(mixed, there[order].tolist())


def test_the_amortised_variant_shares_an_advantage_among_the_turns() -> None:
    rollouts = batch(LONG_AND_SHORT)
    final = torch.tensor([False, False, True, True, True])
    advantages = amortised_advantages(rollouts, final=final, train_final=True)
    close(advantages[:, 0], [0.5 / 3, 0.5 / 3, 0.5 / 3, -0.5, 0.0])


def test_the_amortised_variant_can_divide_by_the_groups_deviation() -> None:
    rollouts = batch(LONG_AND_SHORT)
    final = torch.tensor([False, False, True, True, True])
    advantages = amortised_advantages(rollouts, final=final, train_final=True, normalise_by_std=True)
    # ±0.5 / 0.707107, shared among three turns and among one
    close(advantages[:, 0], [0.235702, 0.235702, 0.235702, -0.707106, 0.0])


def test_the_amortised_variant_can_leave_the_answers_turn_out() -> None:
    rollouts = batch(LONG_AND_SHORT)
    final = torch.tensor([False, False, True, True, True])
    advantages = amortised_advantages(rollouts, final=final, train_final=False)
    close(advantages, [[0.5 / 3, 0.5 / 3, 0], [0.5 / 3, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert amortised_mask(rollouts.mask, final=final, train_final=False).sum() == 3


def test_rows_of_one_rollout_with_two_rewards_are_refused() -> None:
    with pytest.raises(ValueError, match="different rewards"):
        batch([("a", "p", 1.0, [1]), ("a", "p", 0.0, [1])])


def test_rows_of_one_rollout_with_two_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="different prompts"):
        batch([("a", "p", 1.0, [1]), ("a", "q", 1.0, [1])])


def test_rows_without_a_session_are_refused() -> None:
    with pytest.raises(ValueError, match="numbers of rows"):
        Rollouts.from_rows(session_ids=["a"], group_ids=["p", "p"], rewards=torch.zeros(2), mask=torch.ones(2, 1))


def test_a_reply_near_its_limit_loses_reward_in_a_line() -> None:
    lengths = torch.tensor([10.0, 80.0, 90.0, 100.0, 130.0])
    limits = torch.full((5,), 100.0)
    close(overlong_penalty(lengths, limits=limits, share=0.2), [0.0, 0.0, -0.5, -1.0, -1.0])
    with pytest.raises(ValueError, match="share"):
        overlong_penalty(lengths, limits=limits, share=0.0)


def test_a_rollout_loses_the_mean_of_its_replies_penalties() -> None:
    penalties = torch.tensor([0.0, -1.0, -0.5, 0.0, -0.25])
    close(less_overlong(batch(LONG_AND_SHORT), penalties).rewards, [0.5, 0.0, 0.25])


def test_a_reply_that_was_cut_off_is_left_out_of_the_loss() -> None:
    mask = without_truncated(torch.ones(2, 2, dtype=torch.long), torch.tensor([True, False]))
    assert mask.tolist() == [[0, 0], [1, 1]]


def test_groups_of_equal_rewards_are_dropped_up_to_the_steps_bound() -> None:
    assert dropped(["a", "b", "c"], dropped_before=0, most=5) == ["a", "b", "c"]
    assert dropped(["a", "b", "c"], dropped_before=3, most=5) == ["a", "b"]
    assert dropped(["a", "b", "c"], dropped_before=5, most=5) == []


@pytest.mark.parametrize(
    ("objective", "expected"),
    [("grpo", 0.5), ("dr-grpo", 0.5), ("dapo", 0.707106), ("gspo", 0.707106)],
)
def test_an_objective_divides_by_the_deviation_as_its_paper_does(objective: Objective, expected: float) -> None:
    settings = LoopSettings(objective=objective)
    close(grpo_advantages(batch(LONG_AND_SHORT), normalise_by_std=settings.deviation)[:1, 0], [expected])


@pytest.mark.parametrize("objective", ["grpo", "amortised"])
def test_a_recipe_chooses_the_deviation_where_the_paper_leaves_it_open(objective: Objective) -> None:
    assert LoopSettings(objective=objective, normalise_by_std=True).deviation
    assert not LoopSettings(objective=objective).deviation


@pytest.mark.parametrize("objective", ["dr-grpo", "rea-grpo"])
def test_a_deviation_that_the_paper_does_not_have_is_refused(objective: Objective) -> None:
    with pytest.raises(ValueError, match=f"{objective} does not divide"):
        LoopSettings(objective=objective, normalise_by_std=True)


def test_all_correct_prefers_fewer_reads_and_all_wrong_more() -> None:
    rewards = torch.tensor([1.0, 1.0, 0.0, 0.0])
    groups = torch.tensor([0, 0, 1, 1])
    nodes = torch.tensor([1, 3, 1, 3])
    # of (−1, −3): off the mean ±1, the sample's deviation sqrt(2 / 1) = 1.414214; of (1, 3) likewise
    close(outcome_advantages(rewards, groups, nodes), [0.707107, -0.707107, -0.707107, 0.707107])


def test_the_deviation_is_that_of_a_sample_as_published() -> None:
    found = outcome_advantages(torch.ones(4), torch.zeros(4, dtype=torch.long), torch.tensor([1, 2, 2, 3]))
    # off the mean of (−1, −2, −2, −3): (1, 0, 0, −1); sqrt(2 / 3) = 0.816497, where all of the group gives sqrt(2 / 4)
    close(found, [1.224744, 0.0, 0.0, -1.224744])


def test_a_mixed_group_shares_one_among_the_right_and_minus_one_among_the_wrong() -> None:
    rewards = torch.tensor([1.0, 1.0, 0.0, 0.4])
    nodes = torch.tensor([1, 2, 1, 3])
    found = outcome_advantages(rewards, torch.zeros(4, dtype=torch.long), nodes)
    # e^-1 / (e^-1 + e^-2) = 0.731059; e^-1 / (e^-1 + e^-3) = 0.880797
    close(found, [0.731059, 0.268941, -0.880797, -0.119203])


def test_equal_node_counts_in_a_group_that_agrees_teach_nothing() -> None:
    found = outcome_advantages(torch.ones(3), torch.zeros(3, dtype=torch.long), torch.tensor([2, 2, 2]))
    assert found.tolist() == [0.0, 0.0, 0.0]


def test_step_rewards_compare_turns_of_the_same_prompt_and_kind() -> None:
    groups = torch.tensor([0, 0, 0, 1, 0])
    found = step_advantages([1.0, 0.0, -1.0, 1.0, None], ["read", "read", "judge", "read", "answer"], groups)
    close(found, [0.5, -0.5, 0.0, 0.0, 0.0])


def test_alpha_enters_once_and_a_step_stays_on_its_own_row() -> None:
    rollouts = batch(
        [("a", "p", 1.0, [1, 1]), ("a", "p", 1.0, [1, 0]), ("b", "p", 0.0, [1, 1]), ("b", "p", 0.0, [0, 1])]
    )
    advantages = rea_grpo_advantages(
        rollouts,
        nodes=torch.tensor([1, 1]),
        steps=[1.0, None, 0.0, None],
        kinds=["read", "answer", "read", "answer"],
        alpha=0.1,
    )
    # ±1 from the mixed group of one right and one wrong; ±0.5 from the steps
    close(advantages, [[0.95, 0.95], [0.9, 0.0], [-0.95, -0.95], [0.0, -0.9]])


def test_steps_that_do_not_fit_the_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="one entry for each row"):
        rea_grpo_advantages(batch(LONG_AND_SHORT), nodes=torch.ones(3), steps=[None], kinds=["read"])
