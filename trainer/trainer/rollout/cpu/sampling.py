"""Samples the next token of many rows, each with its own decoding."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

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


class Sampler:
    """Samples from one stream of random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = torch.Generator().manual_seed(seed)

    def draw(self, logits: Tensor, decodings: Sequence[Decoding]) -> tuple[list[int], list[float]]:
        """Sample a token for each row of logits (rows, vocabulary), with its log-probability.

        That is of the sampling distribution: after temperature, top-k and top-p. For greedy rows it is the model's own.
        """
        temperature = torch.tensor([each.temperature for each in decodings])
        greedy = temperature <= 0
        scaled = logits / torch.where(greedy, 1.0, temperature)[:, None]
        for row, each in enumerate(decodings):
            if not greedy[row] and (each.top_p < 1 or each.top_k > 0):
                scaled[row] = _restricted(scaled[row], each)
        log_probs = scaled.log_softmax(-1)
        drawn = torch.multinomial(log_probs.exp(), 1, generator=self._random)[:, 0]
        tokens = torch.where(greedy, log_probs.argmax(-1), drawn)
        return tokens.tolist(), log_probs.gather(1, tokens[:, None])[:, 0].tolist()


def _restricted(logits: Tensor, decoding: Decoding) -> Tensor:
    """Return the logits (vocabulary,) with −∞ outside the ``top_k`` and the smallest set that holds ``top_p``."""
    ordered, order = logits.sort(descending=True)
    before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
    kept = before < decoding.top_p
    if decoding.top_k > 0:
        kept[decoding.top_k :] = False
    kept[0] = True
    return torch.full_like(logits, -torch.inf).scatter(0, order[kept], ordered[kept])
