"""DAPO's loss and its care for the length of replies (arXiv 2503.14476), with the dual clip of MemAgent's runs.

    r_t   = exp(log π(t) − log π_old(t))
    L     = Σ_t mask_t · l_t / Σ_t mask_t                                           token mean over the whole batch
    l_t   = max(−A_t r_t, −A_t clip(r_t, 1 − ε_low, 1 + ε_high))                    clip-higher: ε_high > ε_low
    l_t   = min(l_t, −A_t c)   where A_t < 0                                        dual clip, c = 3

Overlong replies: a soft penalty grows over the last share of the limit, and what the limit cut off can be left out of
the loss, for its reward says nothing about the words it holds. A rollout has many replies: what its reward loses is the
mean of their penalties, so that a long document is not punished for its turns.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from trainer.objectives.rollouts import Rollouts

_MOST_LOG_RATIO = 20.0
"""Beyond it the ratio is clipped anyway, and its exponential overflows."""


@dataclass(frozen=True, slots=True)
class Clip:
    """MemAgent's run clips at 0.2 on both sides, slime-agentic at 0.2 and 0.3, DAPO's paper at 0.2 and 0.28."""

    low: float = 0.2
    high: float = 0.2
    dual: float = 3.0


def policy_loss(log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, mask: Tensor, *, clip: Clip) -> Tensor:
    """The loss, a scalar; 0 for an empty mask. All inputs are (rows, tokens)."""
    ratio = (log_probs - old_log_probs).clamp(-_MOST_LOG_RATIO, _MOST_LOG_RATIO).exp()
    clipped = ratio.clamp(1 - clip.low, 1 + clip.high)
    loss = torch.maximum(-advantages * ratio, -advantages * clipped)
    loss = torch.where(advantages < 0, torch.minimum(loss, -advantages * clip.dual), loss)
    return (loss * mask).sum() / mask.sum().clamp(min=1)


def overlong_penalty(lengths: Tensor, *, limits: Tensor, share: float) -> Tensor:
    """The penalty for each reply's length in tokens; ``limits`` are those of the replies (same shape as ``lengths``).

    0 up to ``(1 − share) · limit``, then falling in a line to −1 at the limit and beyond. DAPO's share is a fifth.
    Raises ValueError unless ``0 < share <= 1``.
    """
    if not 0 < share <= 1:
        raise ValueError("the share must be above 0 and at most 1")
    return -((lengths - (1 - share) * limits) / (share * limits)).clamp(0.0, 1.0)


def less_overlong(rollouts: Rollouts, penalties: Tensor) -> Rollouts:
    """The rollouts, the reward of each less by the mean of its replies' penalties (rows,)."""
    total = torch.zeros_like(rollouts.rewards).index_add_(0, rollouts.sessions, penalties.to(rollouts.rewards.dtype))
    return replace(rollouts, rewards=rollouts.rewards + total / rollouts.turns.clamp(min=1))


def without_truncated(mask: Tensor, truncated: Tensor) -> Tensor:
    """The loss mask (rows, tokens) without the rows whose reply hit its limit; ``truncated`` is (rows,)."""
    return mask * (~truncated).unsqueeze(-1)


def informative(rollouts: Rollouts) -> Tensor:
    """Which rollouts can teach (rollouts,): those of a group whose rewards differ (DAPO's dynamic sampling)."""
    rewards, groups = rollouts.rewards, rollouts.groups
    count = int(groups.max()) + 1 if len(groups) else 0
    low = torch.full((count,), torch.inf).scatter_reduce(0, groups, rewards, "amin")
    high = torch.full((count,), -torch.inf).scatter_reduce(0, groups, rewards, "amax")
    return (high > low)[groups]
