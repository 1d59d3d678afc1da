"""The tiny model's network: Qwen3 in plain torch, without padding masks or caches.

The parameters carry the names of `transformers.Qwen3ForCausalLM`, so a state dict is directly a Hugging Face checkpoint
(a test asserts equal logits). Written out because a training step on a CPU core is three times faster this way:
right-padded rows need no mask, and the vocabulary head runs only on positions with a loss.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Shape:
    """Sizes of the network. `head_dim` is 32: vLLM's CPU attention rejects 16."""

    vocab: int
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    head_dim: int = 32
    intermediate: int = 256
    rope_theta: float = 1_000_000.0
    norm_eps: float = 1e-6
    positions: int = 4096


class RmsNorm(nn.Module):
    """Root-mean-square norm over the last axis with a learned gain."""

    def __init__(self, size: int, eps: float, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), gain))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return scaled.to(x.dtype) * self.weight.to(x.dtype)


def rope_tables(shape: Shape, length: int) -> tuple[Tensor, Tensor]:
    """Return cosine and sine tables, each (length, head_dim), in the half-split layout of Hugging Face."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    angles = torch.outer(torch.arange(length, dtype=torch.float32), shape.rope_theta**-exponents)
    doubled = torch.cat((angles, angles), dim=-1)
    return doubled.cos(), doubled.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary positions to x (batch, heads, seq, head_dim)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Apply softmax attention over (batch, heads, seq, head_dim), written out: on a CPU core in bfloat16 the backward
    pass of torch's fused kernel takes four times as long at these lengths.
    """
    seq = q.shape[2]
    future = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(2, 3)
    weights = scores.float().masked_fill(future, -1e9).softmax(-1)
    return weights.to(v.dtype) @ v


class Attention(nn.Module):
    """Causal attention with the per-head query and key norms of Qwen3."""

    def __init__(self, shape: Shape, sharpness: float) -> None:
        super().__init__()
        self.heads, self.head_dim = shape.heads, shape.head_dim
        width = shape.heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden, width, bias=False)
        self.k_proj = nn.Linear(shape.hidden, width, bias=False)
        self.v_proj = nn.Linear(shape.hidden, width, bias=False)
        self.o_proj = nn.Linear(width, shape.hidden, bias=False)
        self.q_norm = RmsNorm(shape.head_dim, shape.norm_eps, sharpness)
        self.k_norm = RmsNorm(shape.head_dim, shape.norm_eps, sharpness)

    def queries_and_keys(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return both (batch, heads, seq, head_dim), normed and rotated."""
        split = (*x.shape[:2], self.heads, self.head_dim)
        q = rotate(self.q_norm(self.q_proj(x).view(split)).transpose(1, 2), cos, sin)
        k = rotate(self.k_norm(self.k_proj(x).view(split)).transpose(1, 2), cos, sin)
        return q, k

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, seq, _ = x.shape
        q, k = self.queries_and_keys(x, cos, sin)
        v = self.v_proj(x).view(batch, seq, self.heads, self.head_dim).transpose(1, 2)
        mixed = causal_attention(q, k, v)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, seq, -1))


class Mlp(nn.Module):
    """The gated feed-forward block."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, shape: Shape, sharpness: float) -> None:
        super().__init__()
        self.self_attn = Attention(shape, sharpness)
        self.mlp = Mlp(shape)
        self.input_layernorm = RmsNorm(shape.hidden, shape.norm_eps)
        self.post_attention_layernorm = RmsNorm(shape.hidden, shape.norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Trunk(nn.Module):
    """Embeddings, blocks and the last norm: the part that Hugging Face calls `model`."""

    def __init__(self, shape: Shape, sharpness: float) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape, sharpness) for _ in range(shape.layers))
        self.norm = RmsNorm(shape.hidden, shape.norm_eps)

    def block(self, number: int) -> Layer:
        """Return a layer by number."""
        return cast(Layer, self.layers[number])

    def forward(self, ids: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class TinyQwen3(nn.Module):
    """The whole network; the output head shares the embedding."""

    def __init__(self, shape: Shape, *, sharpness: float = 1.4) -> None:
        """Initialise; `sharpness` is the start of the query and key gains, whose product bounds attention logits."""
        super().__init__()
        self.shape = shape
        self.model = Trunk(shape, sharpness)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.005 if deep else parameter.shape[-1] ** -0.5)
        nn.init.normal_(self.model.embed_tokens.weight, std=0.05)

    def forward(self, ids: Tensor, at: Tensor) -> Tensor:
        """Return logits (n, vocab) at the flat positions `at` (n,) of ids (batch, seq)."""
        cos, sin = (table.to(self.model.embed_tokens.weight.dtype) for table in rope_tables(self.shape, ids.shape[1]))
        hidden = self.model(ids, cos.to(ids.device), sin.to(ids.device))
        picked = hidden.reshape(-1, self.shape.hidden)[at]
        return F.linear(picked, self.model.embed_tokens.weight)


def load(network: TinyQwen3, weights: dict[str, Tensor]) -> None:
    """Load a checkpoint's weights; tokens that it has no row for keep their new one."""
    rows = network.model.embed_tokens.weight.detach().clone()
    trained = weights["model.embed_tokens.weight"]
    rows[: len(trained)] = trained
    network.load_state_dict({**weights, "model.embed_tokens.weight": rows})
