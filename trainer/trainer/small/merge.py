"""Adds an adapter to its base: the folder that an engine serves."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from trainer.small.network import LoraShape

_PREFIX = "base_model.model."
_COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json")


def merge(base: Path, adapter: Path, folder: Path, lora: LoraShape | None = None) -> None:
    """Write ``folder`` as the base with the adapter's weights added, in the base's type.

    Raises ValueError for an adapter of other layers or another rank, and OSError.
    """
    shape = lora or LoraShape()
    learned = load_file(adapter)
    folder.mkdir(parents=True, exist_ok=True)
    merged: dict[str, torch.Tensor] = {}
    with safe_open(base / "model.safetensors", "pt") as held:
        for name in held.keys():  # noqa: SIM118
            merged[name] = held.get_tensor(name)
    for name in [name for name in learned if ".lora_A." in name]:
        low, high = learned.pop(name).float(), learned.pop(name.replace(".lora_A.", ".lora_B.")).float()
        target = name.removeprefix(_PREFIX).replace(".lora_A.", ".")
        weight = merged.get(target)
        if weight is None or low.shape[0] != shape.rank or (high.shape[0], low.shape[1]) != tuple(weight.shape):
            raise ValueError(f"{adapter}: {name} does not fit {base}")
        merged[target] = _added(weight, high * (shape.alpha / shape.rank), low)
    if learned:
        raise ValueError(f"{adapter} holds more than an adapter: {next(iter(learned))}")
    save_file(merged, folder / "model.safetensors", metadata={"format": "pt"})
    for name in _COPIED:
        shutil.copyfile(base / name, folder / name)


def _added(weight: torch.Tensor, high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """Add ``high @ low``, one rank after the other: a library's product sums in another order on another processor."""
    total = weight.float()
    for rank in range(low.shape[0]):
        total += torch.outer(high[:, rank], low[rank])
    return total.to(weight.dtype)
