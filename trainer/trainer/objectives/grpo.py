"""Group-relative advantages: GRPO, and multi-conversation GRPO as MemAgent publishes it (arXiv 2507.02259).

    MemAgent, Dr. GRPO    A_i = R_i − mean_{j in group(i)} R_j
    GRPO, DAPO, GSPO      A_i = (R_i − mean_{j in group(i)} R_j) / (std_{j in group(i)} R_j + ε)      of a sample, n − 1
    all                   A_{i,c,t} = A_i       on every token t of every conversation c that the policy wrote

One reward R per rollout, groups by prompt. The mean is over rollouts: over rows, a rollout of many chunks would count
many times, and long documents would decide. ε = 1e-6, as verl has it. The objectives that share these advantages differ
in ratio and mean (:mod:`trainer.objectives.published`).
"""

from __future__ import annotations

from torch import Tensor

from trainer.objectives.groups import centred, z_scores
from trainer.objectives.rollouts import Rollouts


def grpo_advantages(rollouts: Rollouts, *, normalise_by_std: bool = False) -> Tensor:
    """Advantages (rows, tokens). ``normalise_by_std`` is plain GRPO; the published MemAgent runs leave it off."""
    of_group = z_scores if normalise_by_std else centred
    return rollouts.over_tokens(of_group(rollouts.rewards, rollouts.groups))
