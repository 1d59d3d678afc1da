"""Samples the next token of many rows, each with its own decoding."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Decoding:
    """Temperature 0 is greedy; ``top_k`` of 0 or less means all tokens."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1


def draw(logits: Tensor, decodings: Sequence[Decoding], dice: Sequence[random.Random]) -> tuple[list[int], list[float]]:
    """Sample a token for each row of logits (rows, vocabulary) by a number from its own dice; with log-probabilities.

    These are of the sampling distribution: after temperature, top-k and top-p. Those of greedy rows are the model's.
    """
    temperature = torch.tensor([each.temperature for each in decodings])
    greedy = temperature <= 0
    scaled = logits / torch.where(greedy, 1.0, temperature)[:, None]
    for row, each in enumerate(decodings):
        if not greedy[row] and (each.top_p < 1 or each.top_k > 0):
            scaled[row] = _restricted(scaled[row], each)
    log_probs = scaled.log_softmax(-1)
    drawn = _at(log_probs, torch.tensor([each.random() for each in dice], dtype=torch.float64))
    tokens = torch.where(greedy, log_probs.argmax(-1), drawn)
    return tokens.tolist(), log_probs.gather(1, tokens[:, None])[:, 0].tolist()


def _at(log_probs: Tensor, shares: Tensor) -> Tensor:
    """Return the tokens (rows,) at which the sum of the probabilities exceeds the shares (rows,), from 0 to 1."""
    sums = log_probs.double().exp().cumsum(-1)
    found = torch.searchsorted(sums, (shares * sums[:, -1])[:, None], right=True)[:, 0]
    return found.clamp(max=log_probs.shape[-1] - 1)


def _restricted(logits: Tensor, decoding: Decoding) -> Tensor:
    """Return the logits (vocabulary,) with −∞ outside the ``top_k`` and the smallest set that holds ``top_p``."""
    ordered, order = logits.sort(descending=True)
    before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
    kept = before < decoding.top_p
    if decoding.top_k > 0:
        kept[decoding.top_k :] = False
    kept[0] = True
    return torch.full_like(logits, -torch.inf).scatter(0, order[kept], ordered[kept])
