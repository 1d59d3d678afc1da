"""Continuous batching over a causal transformers model, for small models on a CPU.

Rows share one preallocated cache; a request takes a row, its prompt is prefilled at once, and then every step generates
one token for all rows. The last row moves into the place of a finished one, so the used rows stay together, and waiting
requests join at the next step. Concurrent requests with the same prompt, such as a group's rollouts, are prefilled
once. A request may bring a draft of its reply, which is read along with the prompt: as far as the model generates the
draft's tokens itself, they cost no step each. The reply's distribution stays the same (speculative decoding, arXiv
2211.17192, with a certain draft).
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from trainer.rollout.cpu.row_cache import RowCache
from trainer.rollout.cpu.sampling import Decoding, draw


@dataclass(eq=False)
class Request:
    """A prompt and its reply so far: ``made`` tokens, the last one an end token unless the limit cut it off.

    ``log_probs`` are of the sampling distribution; of the model's own when decoding is greedy. ``draft`` is a guess.
    ``dice`` draw its tokens; without dice of its own it gets some of the batcher's seed.
    """

    prompt: list[int]
    max_tokens: int
    decoding: Decoding
    draft: list[int] = field(default_factory=list[int])
    dice: random.Random | None = None
    made: list[int] = field(default_factory=list[int])
    log_probs: list[float] = field(default_factory=list[float])
    ended: bool = False

    @property
    def done(self) -> bool:
        """Return whether the reply is complete or at its limit."""
        return self.ended or len(self.made) >= self.max_tokens

    @property
    def read(self) -> tuple[int, ...]:
        """Return the tokens to prefill: the prompt, and the draft as far as its tokens could be followed by another."""
        return (*self.prompt, *self.draft[: self.max_tokens - 1])

    def take(self, token: int, log_prob: float, ends: frozenset[int]) -> None:
        """Append a token."""
        self.made.append(token)
        self.log_probs.append(log_prob)
        self.ended = token in ends

    def take_drafted(self, tokens: Sequence[int], log_probs: Sequence[float], ends: frozenset[int]) -> None:
        """Append the tokens drawn after the prompt and after each token of the draft, up to the first other one."""
        for token, log_prob, drafted in zip(tokens, log_probs, (*self.draft, None), strict=False):
            self.take(token, log_prob, ends)
            if self.ended or token != drafted:
                return


class Batcher:
    """Batches requests. Not thread-safe: one thread submits and steps."""

    def __init__(self, model: PreTrainedModel, *, ends: frozenset[int], rows: int, length: int, seed: int) -> None:
        self._model = model.eval()
        self._ends = ends
        self._cache = RowCache(model.config, rows=rows, length=length, dtype=model.dtype)
        self._random = random.Random(seed)
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
        request.dice = request.dice or random.Random(self._random.random())
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
        texts = list(dict.fromkeys(request.read for request in admitted))
        places = {text: number for number, text in enumerate(texts)}
        source = [places[request.read] for request in admitted]
        hidden = self._read(texts, first_row=len(self._running), source=source)
        self._take_first(admitted, hidden[source])
        self._running += admitted
        return True

    def _read(self, texts: Sequence[tuple[int, ...]], *, first_row: int, source: Sequence[int]) -> Tensor:
        """Return (texts, tokens, hidden) after each token; ``source`` maps rows to texts for the cache."""
        lengths = torch.tensor([len(text) for text in texts])
        longest = int(lengths.max())
        ids = torch.zeros(len(texts), longest, dtype=torch.long)
        for number, text in enumerate(texts):
            ids[number, : len(text)] = torch.tensor(text)
        view = self._cache.filling(first_row, source, lengths[list(source)])
        causal = torch.ones(longest, longest, dtype=torch.bool).tril()
        return self._hidden(ids, torch.arange(longest).expand_as(ids), causal[None, None], view)

    def _take_first(self, admitted: Sequence[Request], hidden: Tensor) -> None:
        """Draw after each prompt and each token of its draft, and keep in the cache what the reply goes on from."""
        counts = [len(request.read) - len(request.prompt) + 1 for request in admitted]
        row = torch.arange(len(admitted)).repeat_interleave(torch.tensor(counts))
        at = torch.cat(
            [torch.arange(count) + len(request.prompt) - 1 for request, count in zip(admitted, counts, strict=True)]
        )
        tokens, log_probs = _drawn(self._head(hidden[row, at]), [admitted[number] for number in row.tolist()])
        start = 0
        for number, (request, count) in enumerate(zip(admitted, counts, strict=True), start=len(self._running)):
            span = slice(start, start + count)
            request.take_drafted(tokens[span], log_probs[span], self._ends)
            self._cache.used[number] = len(request.prompt) + len(request.made) - 1
            start += count

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
        tokens, log_probs = _drawn(logits, requests)
        for request, token, log_prob in zip(requests, tokens, log_probs, strict=True):
            request.take(token, log_prob, self._ends)

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


def _drawn(logits: Tensor, requests: Sequence[Request]) -> tuple[list[int], list[float]]:
    """Draw a token for each row of logits, with its request's decoding and dice."""
    dice = [request.dice for request in requests if request.dice]
    return draw(logits, [request.decoding for request in requests], dice)
