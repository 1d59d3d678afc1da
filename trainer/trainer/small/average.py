"""Averages adapters of runs that went on from each other.

What a run learned anew and what it forgot both shrink by half; of runs that began apart the mean is of no use, since
their factors have nothing in common.
"""

# torch's and safetensors' own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def average(adapters: Sequence[Path], file: Path) -> None:
    """Write the mean of the adapters' weights in bfloat16. Raises ValueError for adapters of other layers, OSError."""
    first, *others = [load_file(adapter) for adapter in adapters]
    for adapter, weights in zip(adapters[1:], others, strict=True):
        if {name: held.shape for name, held in weights.items()} != {name: held.shape for name, held in first.items()}:
            raise ValueError(f"{adapter} has other layers than {adapters[0]}")
    mean = {name: torch.stack([held[name].float() for held in (first, *others)]).mean(0) for name in first}
    save_file({name: weights.to(torch.bfloat16) for name, weights in mean.items()}, file)
