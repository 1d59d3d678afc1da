"""Initialises two layers for associative recall instead of noise.

Copying the value that follows "the locker code of Marta is" from elsewhere takes two steps (an induction circuit):
tokens look back at the entity and the attribute before them, then a token looks for one with the same two. Learned from
noise, this is a plateau of many minutes on a CPU core; with this start, training refines it at once. It holds no facts,
names or values: only offsets of the canonical sentence, and random projections. Training is free to change all of it.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import torch
from torch import Tensor

from trainer.tiny.network import Attention, TinyQwen3

LOOK_BACK = (1, 2, 4, 5)
"""The offset of each head of the first layer: entity and attribute, from before the value and from the value."""
_PAIR_WEIGHTS = (0.5, 0.25, 0.15, 0.1)
_FIRST_SLOW_PAIR = 6
_CONSTANT, _COPY, _SHOW = 0.25, 0.1, 0.1


@torch.no_grad()
def wire(network: TinyQwen3) -> None:
    """Wire the first two layers; needs four heads."""
    hidden = network.shape.hidden
    reads, slots = _orthonormal(hidden), _orthonormal(hidden)
    first, second = (network.model.block(number).self_attn for number in (0, 1))
    network.model.embed_tokens.weight[:, 0] = _CONSTANT
    _look_back(network, first)
    for head in range(len(LOOK_BACK)):
        rows = _rows(network, head)
        first.v_proj.weight[rows] = reads[: network.shape.head_dim]
        first.v_proj.weight[rows, 0] = 0.0
        first.o_proj.weight[:, rows] = _COPY * slots[:, rows]
        _match(network, second, head, slots)
        second.v_proj.weight[rows] = reads[rows]
        second.o_proj.weight[:, rows] = _SHOW * reads[rows].T


def _look_back(network: TinyQwen3, layer: Attention) -> None:
    """Make queries and keys a constant vector on fast rotary pairs, turned so that their product peaks at an offset.

    The constant is an embedding dimension that is the same for all tokens, so no softmax over the vocabulary depends on
    it.
    """
    half = network.shape.head_dim // 2
    speeds = network.shape.rope_theta ** -(torch.arange(half, dtype=torch.float32) / half)
    sizes = torch.zeros(half)
    sizes[: len(_PAIR_WEIGHTS)] = torch.tensor(_PAIR_WEIGHTS).sqrt()
    for head, offset in enumerate(LOOK_BACK):
        rows = _rows(network, head)
        for projection, angle in ((layer.q_proj, torch.zeros(half)), (layer.k_proj, speeds * offset)):
            projection.weight[rows] *= 0.1
            projection.weight[rows, 0] = torch.cat((sizes * angle.cos(), sizes * angle.sin())) * 1.2


def _match(network: TinyQwen3, layer: Attention, head: int, slots: Tensor) -> None:
    """Read tokens 1 and 4 back for queries, 2 and 5 back for keys, through the same random projections.

    They sit on slow rotary pairs, which encode content and not distance.
    """
    half = network.shape.head_dim // 2
    slow = torch.arange(_FIRST_SLOW_PAIR, half)
    for dims, (asked, held) in ((slow, (0, 1)), (slow + half, (2, 3))):
        mix = torch.randn(len(dims), network.shape.head_dim) * network.shape.head_dim**-0.5
        at = dims + head * network.shape.head_dim
        layer.q_proj.weight[at] = mix @ slots[:, _rows(network, asked)].T
        layer.k_proj.weight[at] = mix @ slots[:, _rows(network, held)].T
    fast = torch.cat((torch.arange(_FIRST_SLOW_PAIR), torch.arange(_FIRST_SLOW_PAIR) + half))
    for projection in (layer.q_proj, layer.k_proj):
        projection.weight[fast + head * network.shape.head_dim] *= 0.1


def _rows(network: TinyQwen3, head: int) -> slice:
    return slice(head * network.shape.head_dim, (head + 1) * network.shape.head_dim)


def _orthonormal(size: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size))[0]
