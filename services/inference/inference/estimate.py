"""Estimates a plan's memory: weights, KV cache per token, and how many chunks fit at once.

The formulas are the transformer's own: a token keeps a key and a value for each layer and KV head. What an engine
needs besides (context, graphs, activations) is an assumption and is labelled as one.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from inference.engines import EnginePlan
from inference.registry import ModelShape

GIB = 1 << 30
RUNTIME_BYTES = 2 * GIB
"""Assumed for each GPU: CUDA context, graphs and activations."""
DEFAULT_FRACTION = 0.9
_WEIGHT_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "auto": 2.0}
_QUANTISED_BYTES = {"fp8": 1.0, "compressed-tensors": 1.0}
_FOUR_BITS = 0.56
"""Bytes of a weight of four bits with its scales, in groups of 128."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """GPUs of one kind; ``gpu_bytes`` is the memory of each."""

    gpu_bytes: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes over all replicas; a negative ``cache_bytes`` is the shortfall."""

    weights: int
    per_token: int
    cache: int
    call_tokens: int

    @property
    def chunks_at_once(self) -> int:
        """Number of reading calls, each as long as the profile's window, whose cache fits at once."""
        return max(0, self.cache) // (self.per_token * self.call_tokens)


def estimate(plan: EnginePlan, shape: ModelShape, hardware: Hardware | None, *, call_tokens: int) -> Estimate:
    """Estimate the plan's memory. Without hardware, the cache has the size that the plan gives in bytes."""
    weights = round(shape.parameters * _bytes_per_weight(plan))
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_dim * _bytes_per_value(plan)
    return Estimate(
        weights=weights * plan.data_parallel_size,
        per_token=per_token,
        cache=_cache(plan, weights, hardware) * plan.data_parallel_size,
        call_tokens=call_tokens,
    )


def shape_of(folder: Path) -> ModelShape | None:
    """Read the shape of a checkpoint on disk; its safetensors headers give the weights' size."""
    try:
        config = cast(dict[str, object], json.loads((folder / "config.json").read_text("utf-8")))
        heads, hidden = _number(config, "num_attention_heads"), _number(config, "hidden_size")
        return ModelShape(
            parameters=sum(map(_parameters, folder.glob("*.safetensors"))),
            layers=_number(config, "num_hidden_layers"),
            kv_heads=_number(config, "num_key_value_heads", heads),
            head_dim=_number(config, "head_dim", hidden // heads),
        )
    except (OSError, ValueError, KeyError):
        return None


def _cache(plan: EnginePlan, weights: int, hardware: Hardware | None) -> int:
    """Of one replica."""
    if plan.kv_cache_memory_bytes is not None:
        return plan.kv_cache_memory_bytes * plan.tensor_parallel_size
    if hardware is None:
        return 0
    usable = hardware.gpu_bytes * (plan.memory_fraction or DEFAULT_FRACTION) - RUNTIME_BYTES
    return round(usable * plan.tensor_parallel_size - weights)


def _bytes_per_weight(plan: EnginePlan) -> float:
    if plan.quantization is None:
        return _WEIGHT_BYTES[plan.dtype]
    return _QUANTISED_BYTES.get(plan.quantization, _FOUR_BITS)


def _bytes_per_value(plan: EnginePlan) -> int:
    if plan.kv_cache_dtype is not None and plan.kv_cache_dtype.startswith("fp8"):
        return 1
    return round(_WEIGHT_BYTES[plan.dtype]) if plan.kv_cache_dtype in (None, "auto") else 2


def _number(config: dict[str, object], name: str, otherwise: int | None = None) -> int:
    value = config.get(name, otherwise)
    if not isinstance(value, int):
        raise ValueError(f"config.json has no number {name}")  # noqa: TRY004 - a wrong file, not a wrong call
    return value


def _parameters(file: Path) -> int:
    """Numbers in a safetensors file: its header is 8 bytes of length, then JSON. Source: the format's description."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        header = cast(dict[str, dict[str, list[int]]], json.loads(opened.read(length)))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
