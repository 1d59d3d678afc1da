"""Decodes many prompts at once: left-padded rows, one cache, greedy or by temperature."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.small.network import SmallLlama

_HIDDEN = -1e9


@torch.no_grad()
def generate(
    network: SmallLlama, prompts: Sequence[Sequence[int]], *, end: int, most: int, temperature: float = 0.0
) -> list[list[int]]:
    """Return each prompt's reply without its end token; ``most`` tokens at most."""
    device = network.device
    longest = max(len(prompt) for prompt in prompts)
    pads = torch.tensor([longest - len(prompt) for prompt in prompts], device=device)
    ids = torch.tensor([[end] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device)
    cache = network.cache(len(prompts), longest + most)
    slots = torch.arange(longest + most, device=device)
    padding = slots[None] < pads[:, None]  # (rows, slots): keys that no token may see
    replies = torch.full((len(prompts), most), end, device=device)
    done = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    at = torch.arange(longest, device=device)
    for step in range(most):
        hidden = network(ids, (at[None] - pads[:, None]).clamp(min=0), _mask(at, padding), cache)
        chosen = _chosen(network.logits(hidden[:, -1]).float(), temperature)
        done |= chosen == end
        replies[:, step] = torch.where(done, end, chosen)
        if bool(done.all()):
            break
        ids, at = replies[:, step : step + 1], at[-1:] + 1
    return [row[: row.index(end)] if end in row else row for row in replies.tolist()]


def _mask(at: Tensor, padding: Tensor) -> Tensor:
    """Return the additive mask (rows, queries, keys) of queries at these slots over all slots up to the last."""
    keys = torch.arange(int(at[-1]) + 1, device=at.device)
    hidden = (keys[None, None] > at[None, :, None]) | padding[:, None, : len(keys)]
    hidden &= keys[None, None] != at[None, :, None]  # a row of padding sees itself, so that no softmax is empty
    return torch.zeros(hidden.shape, device=at.device).masked_fill(hidden, _HIDDEN)


def _chosen(logits: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        return logits.argmax(-1)
    return torch.multinomial((logits / temperature).softmax(-1), 1)[:, 0]
