"""A step's metrics per rollout; verl's own are per row, so that long documents weigh more."""

from __future__ import annotations

import torch
from torch import Tensor

from trainer.rollout.advantages import Rows
from trainer.rollout.curves import LENGTHS
from trainer.rollout.overwrites import overwrite_shares


def step_metrics(rows: Rows, real: Tensor) -> dict[str, float]:
    """Return the step's metrics; ``real`` (rows,) leaves out rows that fill up the batch."""
    rollouts = rows.rollouts()
    kept = torch.zeros(len(rollouts.rewards), dtype=torch.bool)
    kept[rollouts.sessions[real]] = True
    groups, rewards = rollouts.groups[kept], rollouts.rewards[kept]
    distinct = _distinct(groups)
    of_groups = [rewards[groups == group] for group in distinct]
    live = sum(bool(each.max() > each.min()) for each in of_groups)
    changes = [facts.get("change") for facts, is_real in zip(rows.facts, real.bool(), strict=True) if bool(is_real)]
    return {
        "memloop/rollouts": float(kept.sum()),
        "memloop/rows": float(real.sum()),
        "memloop/reward": float(rewards.mean()),
        "memloop/truncated": float(rows.truncated[real].float().mean()),
        "memloop/live_groups": live / max(1, len(distinct)),
        **rewards_by_turns(rewards, rollouts.turns[kept]),
        **overwrite_shares(changes),
    }


def rewards_by_turns(rewards: Tensor, turns: Tensor) -> dict[str, float]:
    """Return the mean reward (rollouts,) by conversations of a rollout: 1, 2, 3 to 4, 5 to 8, and so on."""
    upper = 2 ** turns.clamp(min=1).log2().ceil().long()
    return {f"{LENGTHS}{_span(most)}": float(rewards[upper == most].float().mean()) for most in _distinct(upper)}


def _distinct(numbers: Tensor) -> list[int]:
    """Return the different values, in ascending order."""
    return sorted({int(number) for number in numbers})


def _span(most: int) -> str:
    return str(most) if most <= 2 else f"{most // 2 + 1}-{most}"
