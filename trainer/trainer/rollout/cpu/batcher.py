"""Continuous batching over a causal transformers model, for small models on a CPU.

Rows share one preallocated cache; a request takes a row, its prompt is prefilled at once, and then every step generates
one token for all rows. The last row moves into the place of a finished one, so the used rows stay together, and waiting
requests join at the next step. Concurrent requests with the same prompt, such as a group's rollouts, are prefilled
once.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from trainer.rollout.cpu.row_cache import RowCache
from trainer.rollout.cpu.sampling import Decoding, Sampler


@dataclass(eq=False)
class Request:
    """A prompt and its reply so far: ``made`` tokens, the last one an end token unless the limit cut it off.

    ``log_probs`` are of the sampling distribution; of the model's own when decoding is greedy.
    """

    prompt: list[int]
    max_tokens: int
    decoding: Decoding
    made: list[int] = field(default_factory=list[int])
    log_probs: list[float] = field(default_factory=list[float])
    ended: bool = False

    @property
    def done(self) -> bool:
        """Return whether the reply is complete or at its limit."""
        return self.ended or len(self.made) >= self.max_tokens


class Batcher:
    """Batches requests. Not thread-safe: one thread submits and steps."""

    def __init__(self, model: PreTrainedModel, *, ends: frozenset[int], rows: int, length: int, seed: int) -> None:
        self._model = model.eval()
        self._ends = ends
        self._cache = RowCache(model.config, rows=rows, length=length, dtype=model.dtype)
        self._sampler = Sampler(seed)
        self._waiting: list[Request] = []
        self._running: list[Request] = []

    @property
    def idle(self) -> bool:
        """Return whether there are no requests."""
        return not self._waiting and not self._running

    def submit(self, request: Request) -> None:
        """Queue a request. Raises ValueError when prompt and reply do not fit a row, or the reply has no tokens."""
        needed = len(request.prompt) + request.max_tokens
        if not request.prompt or request.max_tokens < 1 or needed > self._cache.length:
            raise ValueError(f"{len(request.prompt)} + {request.max_tokens} tokens do not fit {self._cache.length}")
        self._waiting.append(request)

    @torch.inference_mode()
    def step(self) -> list[Request]:
        """Prefill the waiting requests that fit, generate one token for every row, and return the finished requests."""
        if not self._admit():
            self._decode()
        return self._retire()

    def _admit(self) -> bool:
        admitted = self._waiting[: self._cache.rows - len(self._running)]
        if not admitted:
            return False
        del self._waiting[: len(admitted)]
        prompts = list(dict.fromkeys(tuple(request.prompt) for request in admitted))
        places = {prompt: number for number, prompt in enumerate(prompts)}
        source = [places[tuple(request.prompt)] for request in admitted]
        logits = self._read(prompts, first_row=len(self._running), source=source)
        self._running += admitted
        self._take(admitted, logits[source])
        return True

    def _read(self, prompts: Sequence[tuple[int, ...]], *, first_row: int, source: Sequence[int]) -> Tensor:
        """Return logits (prompts, vocabulary) after each prompt; ``source`` maps rows to prompts for the cache."""
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        longest = int(lengths.max())
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        for number, prompt in enumerate(prompts):
            ids[number, : len(prompt)] = torch.tensor(prompt)
        view = self._cache.filling(first_row, source, lengths[list(source)])
        causal = torch.ones(longest, longest, dtype=torch.bool).tril()
        hidden = self._hidden(ids, torch.arange(longest).expand_as(ids), causal[None, None], view)
        return self._head(hidden[torch.arange(len(prompts)), lengths - 1])

    def _decode(self) -> None:
        rows = len(self._running)
        if not rows:
            return
        ids = torch.tensor([[request.made[-1]] for request in self._running])
        view = self._cache.extending(rows)
        hidden = self._hidden(ids, view.positions, view.mask, view)
        self._take(self._running, self._head(hidden[:, -1]))

    def _hidden(self, ids: Tensor, positions: Tensor, mask: Tensor, view: object) -> Tensor:
        out = self._model.base_model(
            input_ids=ids, position_ids=positions, attention_mask=mask, past_key_values=view, use_cache=True
        )
        return out.last_hidden_state  # (rows, tokens, hidden)

    def _head(self, hidden: Tensor) -> Tensor:
        head: Any = self._model.get_output_embeddings()
        return head(hidden).float()

    def _take(self, requests: Sequence[Request], logits: Tensor) -> None:
        tokens, log_probs = self._sampler.draw(logits, [request.decoding for request in requests])
        for request, token, log_prob in zip(requests, tokens, log_probs, strict=True):
            request.made.append(token)
            request.log_probs.append(log_prob)
            request.ended = token in self._ends

    def _retire(self) -> list[Request]:
        finished: list[Request] = []
        for row in reversed(range(len(self._running))):
            if self._running[row].done:
                finished.append(self._running[row])
                last = self._running.pop()
                if row < len(self._running):
                    self._running[row] = last
                    self._cache.move(len(self._running), row)
        return finished
