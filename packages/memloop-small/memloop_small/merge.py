"""Adds an adapter to its base: the folder that an engine serves."""

# safetensors' own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  # pyright: ignore[reportUnusedImport] - by it numpy knows bfloat16
import numpy as np
from safetensors.numpy import load_file, save_file

_PREFIX = "base_model.model."
_COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json")
_DECODING = {"max_new_tokens": 1024}
"""What an engine takes where a request names no limit: a small model may repeat itself to the end of its window."""


@dataclass(frozen=True, slots=True)
class LoraShape:
    """Rank and scale of the adapters on every linear layer of the blocks."""

    rank: int = 16
    alpha: int = 32


def merge(base: Path, adapter: Path, folder: Path, lora: LoraShape = LoraShape()) -> None:
    """Write ``folder`` as the base with the adapter's weights added, in the base's type.

    Raises ValueError for an adapter of other layers or another rank, and OSError.
    """
    learned = load_file(adapter)
    folder.mkdir(parents=True, exist_ok=True)
    merged: dict[str, Any] = load_file(base / "model.safetensors")
    for name in [name for name in learned if ".lora_A." in name]:
        low, high = (learned.pop(part).astype(np.float32) for part in (name, name.replace(".lora_A.", ".lora_B.")))
        target = name.removeprefix(_PREFIX).replace(".lora_A.", ".")
        weight = merged.get(target)
        if weight is None or low.shape[0] != lora.rank or (high.shape[0], low.shape[1]) != weight.shape:
            raise ValueError(f"{adapter}: {name} does not fit {base}")
        total = weight.astype(np.float32)
        high *= lora.alpha / lora.rank
        for rank in range(lora.rank):  # one after the other: a product sums in another order on another processor
            total += np.outer(high[:, rank], low[rank])
        merged[target] = total.astype(weight.dtype)
    if learned:
        raise ValueError(f"{adapter} holds more than an adapter: {next(iter(learned))}")
    save_file(merged, folder / "model.safetensors", metadata={"format": "pt"})
    for name in _COPIED:
        shutil.copyfile(base / name, folder / name)
    (folder / "generation_config.json").write_text(json.dumps(_DECODING), "utf-8")
