"""DAPO's care for the length of replies, and its choice of groups (arXiv 2503.14476, sections 3.2 and 3.4).

    penalty(l)  =  0                               l <= (1 − s) · L       L a reply's limit, s the share (a fifth)
                   ((1 − s) · L − l) / (s · L)     (1 − s) · L < l <= L
                   −1                              L < l
    R_i        <-  R_i + mean_c penalty(l_{i,c})
    a group g is trained on when  min_{i in g} R_i < max_{i in g} R_i     before the penalty

Its other terms: advantages as GRPO's, ε_low = 0.2, ε_high = 0.28, the token mean, no KL term
(:mod:`trainer.objectives.published`). Replies that the limit cut can be left out of the loss: their reward is not about
the words that they hold. A rollout has many replies: its reward loses the mean of their penalties, so that a long
document is not punished for its turns.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from trainer.objectives.rollouts import Rollouts

METRIC = "reward"
"""verl's name of the reward by which groups are compared: the rollouts' own, before the penalty."""


def overlong_penalty(lengths: Tensor, *, limits: Tensor, share: float) -> Tensor:
    """Return the penalty for each reply's length in tokens; ``limits`` are those of the replies (same shape as
    ``lengths``).

    0 up to ``(1 − share) · limit``, then falling in a line to −1 at the limit and beyond. DAPO's share is a fifth.
    Raises ValueError unless ``0 < share <= 1``.
    """
    if not 0 < share <= 1:
        raise ValueError("the share must be above 0 and at most 1")
    return -((lengths - (1 - share) * limits) / (share * limits)).clamp(0.0, 1.0)


def less_overlong(rollouts: Rollouts, penalties: Tensor) -> Rollouts:
    """Return the rollouts, the reward of each less by the mean of its replies' penalties (rows,)."""
    total = torch.zeros_like(rollouts.rewards).index_add_(0, rollouts.sessions, penalties.to(rollouts.rewards.dtype))
    return replace(rollouts, rewards=rollouts.rewards + total / rollouts.turns.clamp(min=1))


def dropped(alike: Sequence[str], *, dropped_before: int, most: int) -> list[str]:
    """Return the groups to replace by others: those of equal rewards, in the order given.

    ``most`` bounds what a step drops in all, ``dropped_before`` included: a policy that is always right or always wrong
    would else never fill its batch. Groups beyond it stay in the batch.
    """
    return list(alike[: max(0, most - dropped_before)])


def without_truncated(mask: Tensor, truncated: Tensor) -> Tensor:
    """Return the loss mask (rows, tokens) without the rows whose reply hit its limit; ``truncated`` is (rows,)."""
    return mask * (~truncated).unsqueeze(-1)
