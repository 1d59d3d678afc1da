"""Statistics within groups, shared by the estimators."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-6
"""Keeps a group without spread from dividing by zero."""


def centred(values: Tensor, groups: Tensor) -> Tensor:
    """``x_i − mean(x_j : j in the group of i)``. Both (n,); a lone member becomes 0, and so does a group of equals.

    The mean of equal numbers may differ from them in the last bit, which a division by their spread would blow up.
    """
    total, count = _totals(values, groups)
    low, high = (
        torch.zeros_like(total).scatter_reduce(0, groups, values, how, include_self=False)[groups]
        for how in ("amin", "amax")
    )
    return (values - total / count).masked_fill(low == high, 0.0)


def z_scores(values: Tensor, groups: Tensor) -> Tensor:
    """``(x_i − mean) / (std + ε)`` within each group, std that of a sample (n − 1). Both (n,); a lone member is 0."""
    off = centred(values, groups)
    total, count = _totals(off.square(), groups)
    return off / ((total / (count - 1).clamp(min=1)).sqrt() + EPSILON)


def _totals(values: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum and the size of each value's group, both (n,)."""
    total = torch.zeros(int(groups.max()) + 1 if len(groups) else 0, dtype=values.dtype)
    count = torch.zeros_like(total)
    total.index_add_(0, groups, values)
    count.index_add_(0, groups, torch.ones_like(values))
    return total[groups], count[groups]
