"""The shape of a transformer with gated MLPs and grouped queries (Qwen2.5, Qwen3, Llama), and derived sizes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The fields of a checkpoint's ``config.json``. ``biased``: query, key and value have biases (Qwen2.5); ``normed``:
    query and key have norms (Qwen3); ``tied``: the embedding is the output layer too.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    biased: bool = False
    normed: bool = False

    @property
    def layer_parameters(self) -> int:
        """Return the parameters of one layer."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * self.hidden * queries + 2 * self.hidden * keys
        small = 2 * self.hidden + self.biased * (queries + 2 * keys) + self.normed * 2 * self.head_dim
        return attention + 3 * self.hidden * self.intermediate + small

    @property
    def embedding_parameters(self) -> int:
        """Return the parameters of the embedding, and of an untied output layer."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """Return all parameters."""
        return self.layers * self.layer_parameters + self.embedding_parameters + self.hidden

    @property
    def multiplied(self) -> int:
        """Return the parameters that multiply a token: an embedding lookup multiplies nothing."""
        return self.parameters - (0 if self.tied else self.vocabulary * self.hidden)

    @property
    def cached_bytes(self) -> int:
        """Return the key-value cache's bytes per token, in bfloat16."""
        return 2 * self.layers * self.kv_heads * self.head_dim * 2

    def adapter_parameters(self, rank: int) -> int:
        """Return the parameters of low-rank adapters: ``rank · (in + out)`` per linear layer but the output."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * (self.hidden + queries) + 2 * (self.hidden + keys)
        return self.layers * rank * (attention + 3 * (self.hidden + self.intermediate))

    def forward_flops(self, rows: float, tokens: float) -> float:
        """Return the operations of one pass: two per weight and token, and causal attention (QKᵀ and AV)."""
        attention = 2 * self.layers * self.heads * self.head_dim * tokens**2
        return rows * (2 * self.multiplied * tokens + attention)


KNOWN: Final[dict[str, ModelShape]] = {
    "Qwen/Qwen2.5-7B-Instruct": ModelShape(28, 3584, 18944, 28, 4, 128, 152064, tied=False, biased=True),
    "Qwen/Qwen2.5-14B-Instruct": ModelShape(48, 5120, 13824, 40, 8, 128, 152064, tied=False, biased=True),
    "Qwen/Qwen3-4B": ModelShape(36, 2560, 9728, 32, 8, 128, 151936, tied=True, normed=True),
    "Qwen/Qwen3-0.6B": ModelShape(28, 1024, 3072, 16, 8, 128, 151936, tied=True, normed=True),
}
"""By hub id. Source: each checkpoint's ``config.json``."""


class UnknownShape(ValueError):
    """Neither a known model nor a folder with a readable ``config.json``."""


def shape_of(model: str) -> ModelShape:
    """Return the shape of a hub ID or a folder. Raises UnknownShape."""
    if model in KNOWN:
        return KNOWN[model]
    try:
        config = cast(dict[str, object], json.loads((Path(model) / "config.json").read_text("utf-8")))
        return _of_config(config)
    except (OSError, ValueError, KeyError) as error:
        known = ", ".join(KNOWN)
        raise UnknownShape(f"the shape of {model} is not known: give a folder with config.json, or {known}") from error


def _of_config(config: dict[str, object]) -> ModelShape:
    def number(name: str) -> int:
        return int(str(config[name]))

    heads = number("num_attention_heads")
    return ModelShape(
        layers=number("num_hidden_layers"),
        hidden=number("hidden_size"),
        intermediate=number("intermediate_size"),
        heads=heads,
        kv_heads=number("num_key_value_heads"),
        head_dim=number("head_dim") if "head_dim" in config else number("hidden_size") // heads,
        vocabulary=number("vocab_size"),
        tied=bool(config.get("tie_word_embeddings")),
        biased=config.get("model_type") == "qwen2",
        normed=config.get("model_type") == "qwen3",
    )
