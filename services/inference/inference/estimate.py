"""Estimates a plan's memory: weights, KV cache per token, and how many chunks fit at once.

The formulas are the transformer's own: a token keeps a key and a value for each layer and KV head. What an engine
needs besides (context, graphs, activations) is an assumption and is labelled as one.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from inference.checkpoint import config_of
from inference.engines import EnginePlan
from inference.registry import ModelShape
from memloop.wire.chat import Json

GIB = 1 << 30
_RUNTIME_BYTES = 2 * GIB
"""Assumed for each GPU under vLLM, whose fraction includes them: CUDA context, graphs and activations."""
_DEFAULT_FRACTION = 0.92
"""vLLM's own."""
_MIB = 1 << 20
_MANY_GPUS = 4
_SGLANG_DEFAULTS = (
    (20, 2048, 352, 352),
    (35, 4096, 496, 720),
    (60, 4096, 464, 720),
    (160, 8192, 976, 1488),
    (math.inf, 16384, 1616, 1616),
)
"""Below so many GiB of a GPU: tokens of a prefill chunk, MiB of graphs on fewer than four GPUs, and on more."""
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


def runtime_bytes(plan: EnginePlan, hardware: Hardware) -> int:
    """Return what weights and cache leave to the runtime of each GPU.

    SGLang's fraction leaves the rest. Without one it reserves 1.5 MiB for each token of a prefill chunk, an eighth of a
    GiB for each GPU of the model, graphs, and 10 GiB at least on a GPU above 60.
    """
    if plan.engine != "sglang":
        return _RUNTIME_BYTES
    if plan.memory_fraction:
        return round(hardware.gpu_bytes * (1 - plan.memory_fraction))
    gpus = plan.tensor_parallel_size
    chunk, few, many = next(own for gib, *own in _SGLANG_DEFAULTS if hardware.gpu_bytes < gib * GIB)
    graphs = 0 if plan.enforce_eager else few if gpus < _MANY_GPUS else many
    tokens = plan.prefill_chunk_tokens or chunk
    reserve = GIB // 2 + GIB * gpus // 8 + graphs * _MIB + tokens * 3 * _MIB // 2
    return max(reserve, 10 * GIB) if hardware.gpu_bytes > 60 * GIB else reserve


def attention_heads(folder: Path) -> int | None:
    """Return the number of a checkpoint's attention heads; None when its ``config.json`` does not tell."""
    try:
        return _number(config_of(folder), "num_attention_heads")
    except (OSError, ValueError):
        return None


def estimate(plan: EnginePlan, shape: ModelShape, hardware: Hardware | None, *, call_tokens: int) -> Estimate:
    """Estimate the plan's memory. Without hardware, the cache has the size that the plan gives in bytes."""
    per_weight = _QUANTISED_BYTES.get(plan.quantization, _FOUR_BITS) if plan.quantization else _WEIGHT_BYTES[plan.dtype]
    weights = round(shape.parameters * per_weight)
    per_value = 1 if (plan.kv_cache_dtype or "").startswith("fp8") else 2
    if plan.kv_cache_dtype in (None, "auto"):
        per_value = round(_WEIGHT_BYTES[plan.dtype])
    cache = 0  # of one replica
    if plan.kv_cache_memory_bytes is not None:
        cache = plan.kv_cache_memory_bytes * plan.tensor_parallel_size
    elif hardware is not None:
        share = 1.0 if plan.engine == "sglang" else plan.memory_fraction or _DEFAULT_FRACTION
        usable = hardware.gpu_bytes * share - runtime_bytes(plan, hardware)
        cache = round(usable * plan.tensor_parallel_size - weights)
    return Estimate(
        weights=weights * plan.data_parallel_size,
        per_token=2 * shape.layers * shape.kv_heads * shape.head_dim * per_value,
        cache=cache * plan.data_parallel_size,
        call_tokens=call_tokens,
    )


def shape_of(folder: Path) -> ModelShape | None:
    """Read the shape of a checkpoint on disk; its safetensors headers give the weights' size."""
    try:
        config = config_of(folder)
        heads, hidden = _number(config, "num_attention_heads"), _number(config, "hidden_size")
        return ModelShape(
            parameters=sum(map(_parameters, folder.glob("*.safetensors"))),
            layers=_number(config, "num_hidden_layers"),
            heads=heads,
            kv_heads=_number(config, "num_key_value_heads", heads),
            head_dim=_number(config, "head_dim", hidden // heads),
        )
    except (OSError, ValueError, KeyError):
        return None


def _number(config: Json, name: str, otherwise: int | None = None) -> int:
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
