"""What a recipe leaves out of the loss, and what it takes off rewards, on rows as verl holds them."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from trainer.rollout.advantages import Rows, advantages_of, filled, trained_mask
from trainer.rollout.settings import LoopSettings

KEYS = ["p_0_0", "p_0_1", "p_1_0", "p_1_1"]
LETTERS = ["a", "b", "c", "d", "e", "f"]
MASK = torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])


def rows(*, rewards: list[float], truncated: tuple[bool, ...] = (False,) * 4) -> Rows:
    """Two rollouts of one prompt, each a turn of two tokens that may be two long, and a final one of one token."""
    facts = [
        {"final": place % 2 == 1, "limit": 2 if place % 2 == 0 else 4, "truncated": truncated[place]}
        for place in range(4)
    ]
    return Rows(KEYS, facts, torch.tensor(rewards), MASK)


def test_replies_that_were_cut_are_not_trained_on() -> None:
    cut = rows(rewards=[1.0, 1.0, 0.0, 0.0], truncated=(True, False, False, False))
    assert trained_mask(cut, LoopSettings(drop_truncated=True)).tolist() == [[0, 0], [1, 0], [1, 1], [1, 0]]
    assert torch.equal(trained_mask(cut, LoopSettings()), MASK)


def test_a_final_turn_that_is_not_trained_does_not_count_in_the_mean_either() -> None:
    settings = LoopSettings(objective="amortised", train_final=False)
    assert trained_mask(rows(rewards=[1.0] * 4), settings).tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]


def test_long_replies_cost_a_rollout_reward_and_its_group_sees_it() -> None:
    """Penalties at a share of 1: -1 for the reply at its limit, -1/4 for the one of a quarter; the mean is -5/8."""
    one_short = Rows(KEYS, rows(rewards=[1.0] * 4).facts, torch.ones(4), MASK * torch.tensor([[1], [1], [0], [0]]))
    advantages = advantages_of(one_short, LoopSettings(overlong_share=1.0))
    assert advantages[0].tolist() == pytest.approx([-0.3125, -0.3125])


def test_rea_grpo_refuses_a_penalty_that_would_make_right_answers_wrong() -> None:
    with pytest.raises(ValidationError, match="derives correctness from the reward"):
        LoopSettings(objective="rea-grpo", overlong_share=0.2)


@pytest.mark.parametrize(
    ("live", "kept"),
    [
        pytest.param("b e", "b e", id="the live ones are enough"),
        pytest.param("b d e", "a b d e", id="filled up with the first of the others, in their order"),
        pytest.param("", "a b", id="a batch that teaches nothing still has a row for each part"),
        pytest.param("a b c d e f", "a b c d e f", id="all are live"),
    ],
)
def test_live_rows_are_filled_up_to_a_multiple(live: str, kept: str) -> None:
    assert filled(LETTERS, [key in live.split() for key in LETTERS], 2) == kept.split()


@given(live=st.lists(st.booleans(), min_size=12, max_size=12), multiple=st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_no_live_row_is_lost_and_the_parts_are_equal(live: list[bool], multiple: int) -> None:
    keys = [str(number) for number in range(len(live))]
    kept = filled(keys, live, multiple)
    assert {key for key, is_live in zip(keys, live, strict=True) if is_live} <= set(kept)
    assert len(kept) % multiple == 0
    assert len(kept) - sum(live) < max(multiple, 1) or not any(live)
