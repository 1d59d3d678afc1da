"""ReA-GRPO: rereading-adaptive GRPO of MemReread (arXiv 2605.10268), the paper's intent.

A rollout i has a reward R_i, correct when R_i > 0.9, and n_i nodes (the root read and its rereads). Within a group:

    all correct   A_i =  z(−n_i)                                  right in fewer reads is better
    all wrong     A_i =  z(+n_i)                                  giving up early is worse
    mixed         A_i = +softmax(−n) over the correct ones        the cheap right ones get most of +1
                  A_i = −softmax(−n) over the wrong ones          the cheap wrong ones take most of −1

and each conversation c of the rollout, with its step reward s_c (:mod:`trainer.objectives.step_rewards`):

    A_{i,c} = (1 − α) · A_i + α · (s_c − mean of s over the same prompt and the same kind of turn),   α = 0.05

Where the published code differs it errs, and is not followed: it puts step rewards on other turns than those that
earned them, and applies α twice. Here each row brings its own step reward, and α enters once. A turn without a step
reward (the answer, say) has a step part of 0. Its step reward is no gain either (``words_held`` in that
module): ``memloop.step_reward`` chooses it, for a run that repeats the checkpoint's.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from trainer.objectives.groups import centred, z_scores
from trainer.objectives.rollouts import Rollouts

CORRECT_ABOVE = 0.9
ALPHA = 0.05


def rea_grpo_advantages(
    rollouts: Rollouts, *, nodes: Tensor, steps: Sequence[float | None], kinds: Sequence[Hashable], alpha: float = ALPHA
) -> Tensor:
    """Advantages (rows, tokens). ``nodes`` (rollouts,), from 1; ``steps`` and ``kinds`` say each row's step reward
    (None where its kind has none) and kind of turn. Raises ValueError when their lengths differ from the rows.
    """
    if not len(steps) == len(kinds) == len(rollouts.sessions):
        raise ValueError("steps and kinds must have one entry for each row")
    outcome = outcome_advantages(rollouts.rewards, rollouts.groups, nodes)[rollouts.sessions]
    step = step_advantages(steps, kinds, rollouts.groups[rollouts.sessions])
    return rollouts.rows_over_tokens((1 - alpha) * outcome + alpha * step)


def outcome_advantages(rewards: Tensor, groups: Tensor, nodes: Tensor) -> Tensor:
    """A_i of each rollout. All are (rollouts,)."""
    reads = nodes.to(torch.float32)
    correct = rewards > CORRECT_ABOVE
    advantages = torch.zeros_like(reads)
    for group in range(int(groups.max()) + 1 if len(groups) else 0):
        right, wrong = (groups == group) & correct, (groups == group) & ~correct
        if not wrong.any():
            advantages[right] = _z(-reads[right])
        elif not right.any():
            advantages[wrong] = _z(reads[wrong])
        else:
            advantages[right] = torch.softmax(-reads[right], dim=0)
            advantages[wrong] = -torch.softmax(-reads[wrong], dim=0)
    return advantages


def step_advantages(steps: Sequence[float | None], kinds: Sequence[Hashable], groups: Tensor) -> Tensor:
    """Return each row's step reward less the mean of its prompt and kind of turn, (rows,); 0 without a step reward."""
    scored = [row for row, step in enumerate(steps) if step is not None]
    peers: dict[tuple[int, Hashable], int] = {}
    numbers = [peers.setdefault((int(groups[row]), kinds[row]), len(peers)) for row in scored]
    advantages = torch.zeros(len(steps))
    values = torch.tensor([step for step in steps if step is not None])
    advantages[scored] = centred(values, torch.tensor(numbers, dtype=torch.long))
    return advantages


def _z(values: Tensor) -> Tensor:
    return z_scores(values, torch.zeros(len(values), dtype=torch.long))
