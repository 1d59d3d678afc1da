"""A Llama with low-rank adapters in plain torch: packed rows for training, a cache for decoding.

The frozen weights carry the names of `transformers.LlamaForCausalLM`, the adapters those of PEFT. Written out because
the same network then trains on a CPU in bfloat16, compiles to fixed shapes on a GPU and decodes in batches, with
torch alone. A test asserts that its logits are those of transformers.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from memloop_small.merge import LoraShape


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network, under the names of a Hugging Face ``config.json``."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rope_theta: float
    rms_norm_eps: float

    @classmethod
    def of(cls, config: dict[str, Any]) -> Self:
        """Read the sizes from a configuration; newer ones keep ``rope_theta`` in ``rope_parameters``."""
        given = {**config, **config.get("rope_parameters", {})}
        given.setdefault("head_dim", given["hidden_size"] // given["num_attention_heads"])
        return cls(**{name: given[name] for name in cls.__slots__})


class _Merged(torch.autograd.Function):
    """``x (W + B A)^T`` as one product, whose gradients of A and B never hold a matrix of W's size."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, low_a: Tensor, low_b: Tensor) -> Tensor:
        whole = torch.addmm(weight, low_b, low_a)
        ctx.save_for_backward(x, whole, low_a, low_b)
        return F.linear(x, whole)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:
        x, whole, low_a, low_b = ctx.saved_tensors
        of_y = gradients[0]
        flat_x, flat_y = x.flatten(0, -2), of_y.flatten(0, -2)
        of_a = (flat_y @ low_b).T @ flat_x
        of_b = flat_y.T @ (flat_x @ low_a.T)
        return of_y @ whole, None, of_a, of_b


class LoraLinear(nn.Module):
    """A frozen linear layer and what was learned beside it: ``x W^T + scale (x A^T) B^T``.

    A and B stay float32, so that small steps of the optimiser are not rounded away; they compute in x's type. Training
    adds them to W first, as the served weights are made: fewer products, and the same rounding.
    """

    def __init__(self, inputs: int, outputs: int, lora: LoraShape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs), requires_grad=False)
        self.lora_A = nn.Parameter(torch.empty(lora.rank, inputs))
        self.lora_B = nn.Parameter(torch.zeros(outputs, lora.rank))
        self.scale = lora.alpha / lora.rank
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        low_a, low_b = self.lora_A.to(x.dtype), (self.lora_B * self.scale).to(x.dtype)
        if torch.is_grad_enabled():
            return cast(Tensor, _Merged.apply(x, self.weight, low_a, low_b))
        return F.linear(x, self.weight) + F.linear(F.linear(x, low_a), low_b)


class RmsNorm(nn.Module):
    """Root-mean-square norm over the last axis with a frozen gain."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size), requires_grad=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values of the tokens so far: each (layers, batch, key heads, room, head_dim).

    Shapes never change from token to token, so that a step can be captured as a graph: the mask hides what is empty.
    """

    keys: Tensor
    values: Tensor

    def put(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the tokens at their slots, and return all keys and values of the layer."""
        self.keys[layer].index_copy_(2, slots, keys)
        self.values[layer].index_copy_(2, slots, values)
        return self.keys[layer], self.values[layer]


Held = tuple[Cache, Tensor]
"""A cache, and the slots (length,) of the tokens that come now."""


Blocks = list[tuple[slice, slice]]
"""Queries, and the keys that they can see at most."""

_QUERIES_AT_ONCE: Final = 224
"""Queries of a block: attention of short blocks over what they can see costs less than half of the square."""


class Attention(nn.Module):
    """Grouped-query attention: torch's fused kernel on a GPU, written out on a CPU, where its backward pass is slow."""

    def __init__(self, shape: Shape, lora: LoraShape, number: int) -> None:
        super().__init__()
        self.shape, self.number = shape, number
        wide = shape.num_attention_heads * shape.head_dim
        narrow = shape.num_key_value_heads * shape.head_dim
        self.q_proj = LoraLinear(shape.hidden_size, wide, lora)
        self.k_proj = LoraLinear(shape.hidden_size, narrow, lora)
        self.v_proj = LoraLinear(shape.hidden_size, narrow, lora)
        self.o_proj = LoraLinear(wide, shape.hidden_size, lora)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], mask: Tensor, blocks: Blocks, held: Held | None
    ) -> Tensor:
        batch, length, _ = x.shape
        size = self.shape.head_dim
        q = rotate(self.q_proj(x).view(batch, length, -1, size).transpose(1, 2), rope)
        k = rotate(self.k_proj(x).view(batch, length, -1, size).transpose(1, 2), rope)
        v = self.v_proj(x).view(batch, length, -1, size).transpose(1, 2)
        if held is not None:
            k, v = held[0].put(self.number, held[1], k, v)
        if x.is_cuda and length > 1:
            k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for tensor in (k, v))
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        else:
            mixed = _mix_blocks(q, k, v, mask, blocks)  # pyright: ignore[reportCallIssue]
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


def _blocks(mask: Tensor, *, whole: bool) -> Blocks:
    """Cut the queries of a mask (batch, queries, keys), each with the keys from the first to the last one seen."""
    length, keys = mask.shape[1:]
    if whole:
        return [(slice(0, length), slice(0, keys))]
    blocks = Blocks()
    for start in range(0, length, _QUERIES_AT_ONCE):
        queries = slice(start, min(start + _QUERIES_AT_ONCE, length))
        seen = (mask[:, queries] == 0).flatten(0, 1).any(0).nonzero()
        blocks.append((queries, slice(int(seen[0]), int(seen[-1]) + 1)))
    return blocks


@torch.compiler.disable  # the blocks of each row are others, and a compiled layer wants one shape
def _mix_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, blocks: Blocks) -> Tensor:
    """Return values mixed by attention, block by block."""
    parts = [_mix(q[:, :, queries], k[:, :, keys], v[:, :, keys], mask[:, queries, keys]) for queries, keys in blocks]
    return torch.cat(parts, dim=2)


def _mix(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Return values mixed by attention: q (batch, heads, queries, size), k and v (batch, key heads, keys, size)."""
    batch, _, length, size = q.shape
    grouped = (q * size**-0.5).reshape(batch, k.shape[1], -1, size)  # the queries of one key head, one after another
    scores = (grouped @ k.transpose(2, 3)).view(batch, k.shape[1], -1, length, k.shape[2])
    weights = (scores + mask[:, None, None]).softmax(-1)
    return (weights.view(batch, k.shape[1], -1, k.shape[2]) @ v).view(batch, -1, length, size)


def rotate(x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary positions to x (batch, heads, length, head_dim)."""
    first, second = x.chunk(2, dim=-1)
    return x * rope[0] + torch.cat((-second, first), dim=-1) * rope[1]


class Mlp(nn.Module):
    """The gated feed-forward block."""

    def __init__(self, shape: Shape, lora: LoraShape) -> None:
        super().__init__()
        self.gate_proj = LoraLinear(shape.hidden_size, shape.intermediate_size, lora)
        self.up_proj = LoraLinear(shape.hidden_size, shape.intermediate_size, lora)
        self.down_proj = LoraLinear(shape.intermediate_size, shape.hidden_size, lora)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, shape: Shape, lora: LoraShape, number: int) -> None:
        super().__init__()
        self.self_attn = Attention(shape, lora, number)
        self.mlp = Mlp(shape, lora)
        self.input_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], mask: Tensor, blocks: Blocks, held: Held | None = None
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rope, mask, blocks, held)
        return x + self.mlp(self.post_attention_layernorm(x))


class SmallLlama(nn.Module):
    """The whole network; the output head shares the frozen embedding."""

    def __init__(self, shape: Shape, lora: LoraShape = LoraShape()) -> None:
        super().__init__()
        self.shape, self.lora = shape, lora
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.embed_tokens.weight.requires_grad_(False)
        self.layers = nn.ModuleList(Layer(shape, lora, number) for number in range(shape.num_hidden_layers))
        self.norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)

    @classmethod
    def load(cls, folder: Path, lora: LoraShape = LoraShape(), *, dtype: torch.dtype = torch.bfloat16) -> Self:
        """Load a Hugging Face folder of a Llama with tied embeddings. Raises OSError, KeyError for another network."""
        network = cls(Shape.of(json.loads((folder / "config.json").read_text("utf-8"))), lora)
        weights = load_file(folder / "model.safetensors")
        for name, parameter in network.named_parameters():
            if "lora_" not in name:
                parameter.data = weights[f"model.{name}"].to(dtype)
        return network

    def adapters(self) -> dict[str, nn.Parameter]:
        """Return what is trained, by PEFT's names."""
        named = self.named_parameters()
        return {f"base_model.model.model.{name}.weight": held for name, held in named if "lora_" in name}

    def forward(self, ids: Tensor, positions: Tensor, mask: Tensor, held: Held | None = None) -> Tensor:
        """Return the last hidden states (batch, length, hidden).

        ``ids`` and ``positions`` are (batch, length); ``mask`` is (batch, length, keys), 0 where a token sees a key and
        ``-inf``-like where not. With a cache the keys are its room, and the tokens go to its slots.
        """
        x = self.embed_tokens(ids)
        rope, mask = self._rope(positions, x.dtype), mask.to(x.dtype)
        blocks = _blocks(mask, whole=x.is_cuda or held is not None)
        for layer in layers_of(self):
            x = layer(x, rope, mask, blocks) if held is None else layer.forward(x, rope, mask, blocks, held)
        return self.norm(x)

    def compile_layers(self) -> None:
        """Compile the layers for training, whose rows then want one shape; decoding goes past it."""
        for layer in layers_of(self):
            layer.compile()

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits (…, vocab) of hidden states (…, hidden)."""
        return F.linear(hidden, self.embed_tokens.weight)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embed_tokens.weight.device

    def cache(self, batch: int, room: int) -> Cache:
        """Return an empty cache for so many tokens a row."""
        shape, weight = self.shape, self.embed_tokens.weight
        sizes = (shape.num_hidden_layers, batch, shape.num_key_value_heads, room, shape.head_dim)
        keys, values = (torch.zeros(sizes, dtype=weight.dtype, device=weight.device) for _ in range(2))
        return Cache(keys, values)

    def _rope(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        half = torch.arange(0, self.shape.head_dim, 2, device=positions.device, dtype=torch.float32)
        speeds = self.shape.rope_theta ** -(half / self.shape.head_dim)
        angles = positions[:, None, :, None].float() * speeds
        doubled = torch.cat((angles, angles), dim=-1)
        return doubled.cos().to(dtype), doubled.sin().to(dtype)


def fast_type() -> torch.dtype:
    """Return the type in which this processor multiplies fastest: bfloat16 is slow without instructions."""
    able = torch.cpu.get_capabilities()
    return torch.bfloat16 if any(able[name] for name in able if name.endswith("bf16")) else torch.float32


def layers_of(network: SmallLlama) -> list[Layer]:
    """Return the blocks with their type."""
    return [cast(Layer, layer) for layer in network.layers]
