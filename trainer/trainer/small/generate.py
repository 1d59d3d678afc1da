"""Decodes many prompts at once: left-padded rows, one cache, greedy or by temperature.

On a GPU a step is captured once for its shape and replayed: launching its kernels one by one costs more than they do.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.small.network import SmallLlama

_HIDDEN = -1e9
_STEP_OF_ROOM, _STEP_OF_ROWS = 256, 32
"""Sizes are rounded up to these on a GPU, so that few shapes are captured."""


class Decoder:
    """Decodes with one network, and keeps the cache and the captured step of the last shape."""

    def __init__(self, network: SmallLlama) -> None:
        self._network = network
        self._step: _Step | None = None

    @torch.no_grad()
    def __call__(
        self, prompts: Sequence[Sequence[int]], *, end: int, most: int, temperature: float = 0.0
    ) -> list[list[int]]:
        """Return each prompt's reply without its end token; ``most`` tokens at most."""
        device = self._network.device
        rows, longest = len(prompts), max(len(prompt) for prompt in prompts)
        room = longest + most
        if device.type == "cuda":
            rows, room = _up(rows, _STEP_OF_ROWS), _up(room, _STEP_OF_ROOM)
            longest = room - most
        if self._step is None or not self._step.fits(rows, room, temperature):
            self._step = None  # gives its cache back before the next one is made
            self._step = _Step(self._network, rows, room, temperature)
        step = self._step
        filled = [*prompts, *([[end]] * (rows - len(prompts)))]
        ids = torch.tensor([[end] * (longest - len(prompt)) + list(prompt) for prompt in filled], device=device)
        pads = torch.tensor([longest - len(prompt) for prompt in filled], device=device)
        replies = torch.full((rows, most), end, device=device)
        done = torch.zeros(rows, dtype=torch.bool, device=device)
        done[len(prompts) :] = True
        chosen = step.begin(ids, pads)
        for number in range(most):
            done |= chosen == end
            replies[:, number] = torch.where(done, end, chosen)
            # A GPU is asked every eighth time: the answer waits for all that it has still to do.
            if number == most - 1 or ((number % 8 == 7 or device.type == "cpu") and bool(done.all())):
                break
            chosen = step.go_on(replies[:, number])
        own = replies[: len(prompts)].tolist()
        return [row[: row.index(end)] if end in row else row for row in own]


class _Step:
    """One token for every row: its tensors stay where they are, as a captured graph needs."""

    def __init__(self, network: SmallLlama, rows: int, room: int, temperature: float) -> None:
        self._network, self._rows, self._room, self._temperature = network, rows, room, temperature
        device = network.device
        self._cache = network.cache(rows, room)
        self._ids = torch.zeros((rows, 1), dtype=torch.long, device=device)
        self._at = torch.zeros(1, dtype=torch.long, device=device)
        self._pads = torch.zeros(rows, dtype=torch.long, device=device)
        self._chosen = torch.zeros(rows, dtype=torch.long, device=device)
        self._graph = self._captured() if device.type == "cuda" else None

    def fits(self, rows: int, room: int, temperature: float) -> bool:
        return (rows, room, temperature) == (self._rows, self._room, self._temperature)

    def begin(self, ids: Tensor, pads: Tensor) -> Tensor:
        """Read the prompts (rows, length), and return the first tokens (rows,)."""
        self._pads.copy_(pads)
        at = torch.arange(ids.shape[1], device=ids.device)
        self._at.fill_(ids.shape[1])
        return self._next(ids, at)

    def go_on(self, ids: Tensor) -> Tensor:
        """Read one token of each row, and return the next ones."""
        self._ids.copy_(ids[:, None])
        if self._graph is None:
            self._one()
        else:
            self._graph.replay()
        return self._chosen

    def _one(self) -> None:
        self._chosen.copy_(self._next(self._ids, self._at))
        self._at.add_(1)

    def _next(self, ids: Tensor, at: Tensor) -> Tensor:
        slots = torch.arange(self._room, device=ids.device)
        hidden = (slots[None, None] > at[None, :, None]) | (slots[None] < self._pads[:, None])[:, None]
        # A row of padding sees itself, so that no softmax is empty.
        hidden = hidden & (slots[None, None] != at[None, :, None])
        mask = torch.zeros(hidden.shape, device=ids.device).masked_fill(hidden, _HIDDEN)
        positions = (at[None] - self._pads[:, None]).clamp(min=0)
        logits = self._network.logits(self._network(ids, positions, mask, (self._cache, at))[:, -1]).float()
        if self._temperature <= 0:
            return logits.argmax(-1)
        noise = torch.empty_like(logits).exponential_()
        return ((logits / self._temperature).softmax(-1) / noise).argmax(-1)

    def _captured(self) -> torch.cuda.CUDAGraph:
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(3):
                self._one()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._one()
        return graph


def _up(size: int, step: int) -> int:
    return -(-size // step) * step
