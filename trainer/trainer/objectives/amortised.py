"""The evenly amortised variant of multi-conversation GRPO (slime-agentic).

    A_{i,c,t} = (R_i − mean_{j in group(i)} R_j) / T_i          T_i the number of turns (conversations) of rollout i
    A_{i,c,t} = (R_i − mean) / (std + ε) / T_i                  with ``normalise_by_std``, std of a sample (n − 1)

So a rollout weighs the same whatever the length of its document. Its card trains the memory turns alone and leaves the
final answer's turn out; the other choice is to train both. T_i counts all turns either way.
"""

from __future__ import annotations

from torch import Tensor

from trainer.objectives.groups import centred, z_scores
from trainer.objectives.rollouts import Rollouts


def amortised_advantages(
    rollouts: Rollouts, *, final: Tensor, train_final: bool, normalise_by_std: bool = False
) -> Tensor:
    """Advantages (rows, tokens). ``final`` (rows,) is True for the answer's turn of each rollout.

    ``normalise_by_std`` divides by the deviation of the group's rewards too, as slime's own GRPO does.

    Where the final turn is not trained its advantages are 0; take its tokens out of the loss mask too
    (:func:`amortised_mask`), else they count in the token mean.
    """
    of_group = z_scores if normalise_by_std else centred
    each = of_group(rollouts.rewards, rollouts.groups) / rollouts.turns
    return rollouts.over_tokens(each) * amortised_mask(rollouts.mask, final=final, train_final=train_final)


def amortised_mask(mask: Tensor, *, final: Tensor, train_final: bool) -> Tensor:
    """Return the tokens that are trained on, (rows, tokens)."""
    return mask if train_final else mask * (~final).unsqueeze(-1)
