"""What each published objective fixes beside its advantage: the ratio, the mean over tokens, the choice of groups.

A rollout i of group g has conversations c (one reply each, a *sequence*) of tokens t. With the advantage A of the
objective's own module and the ratio r_{i,c,t} = π(token) / π_old(token):

    clipped(r, A)  =  min(r · A, clip(r, 1 − ε_low, 1 + ε_high) · A)                    maximised
    token mean     =  Σ_{i,c,t} clipped / Σ_{i,c} |o_{i,c}|                             all tokens of the update alike
    sequence mean  =  1/N · Σ_{i,c} (1/|o_{i,c}| · Σ_t clipped)                         all N sequences alike
    constant       =  1/N · Σ_{i,c} (1/L · Σ_t clipped)                                 L the same for every sequence
    GSPO           =  sequence mean, r replaced by s_{i,c} = (π(o_{i,c}) / π_old(o_{i,c}))^(1/|o_{i,c}|)

verl computes these (``actor.policy_loss.loss_mode``, ``actor.loss_agg_mode``); this table is for comparing a recipe
with the objective that it names, and for the deviation (:mod:`trainer.objectives.groups`), which is ours. Sources:
GRPO arXiv 2402.03300 (equation 3), DAPO 2503.14476 (equation 8), Dr. GRPO 2503.20783 (section 3.2), GSPO 2507.18071
(equations 5 to 7), MemAgent 2507.02259 (section 3.4), MemReread 2605.10268, slime-agentic's card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Objective: TypeAlias = Literal["grpo", "dapo", "dr-grpo", "gspo", "amortised", "rea-grpo"]
Mean: TypeAlias = Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum-norm"]
"""verl's names of the three means."""


@dataclass(frozen=True, slots=True)
class Published:
    """``deviation``: whether the advantage is divided by the group's deviation; None leaves it to the recipe.

    ``means`` are the means that the publication has, its first choice first. ``loss`` is verl's name of the ratio.
    ``informative_groups``: groups whose rollouts have equal rewards are replaced by others (dynamic sampling).
    ``any_group``: a group of equal rewards still has advantages, so dynamic sampling would drop what it learns from.
    """

    means: tuple[Mean, ...]
    deviation: bool | None = None
    loss: Literal["vanilla", "gspo"] = "vanilla"
    informative_groups: bool = False
    any_group: bool = False


PUBLISHED: Final[Mapping[Objective, Published]] = {
    "grpo": Published(means=("token-mean", "seq-mean-token-mean")),
    "dapo": Published(means=("token-mean",), deviation=True, informative_groups=True),
    "dr-grpo": Published(means=("seq-mean-token-sum-norm",), deviation=False),
    "gspo": Published(means=("seq-mean-token-mean",), deviation=True, loss="gspo"),
    "amortised": Published(means=("token-mean", "seq-mean-token-mean")),
    "rea-grpo": Published(means=("token-mean",), any_group=True),
}


def divides_by_deviation(objective: Objective, *, chosen: bool) -> bool:
    """Return whether the advantage is divided by the group's deviation; ``chosen`` is the recipe's answer where the
    publication leaves it open.
    """
    fixed = PUBLISHED[objective].deviation
    return chosen if fixed is None else fixed
