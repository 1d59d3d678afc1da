"""DAPO's care for the length of replies (arXiv 2503.14476). The clipped loss itself is verl's.

A soft penalty grows over the last share of a reply's limit, and replies that the limit cut can be left out of the loss:
their reward is not about the words that they hold. A rollout has many replies: its reward loses the mean of their
penalties, so that a long document is not punished for its turns.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from trainer.objectives.rollouts import Rollouts


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


def without_truncated(mask: Tensor, truncated: Tensor) -> Tensor:
    """Return the loss mask (rows, tokens) without the rows whose reply hit its limit; ``truncated`` is (rows,)."""
    return mask * (~truncated).unsqueeze(-1)
