"""Teaches the network by packed rows: AdamW on the adapters alone, a cosine, checkpoints that a run resumes from."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from trainer.small.mix import stream
from trainer.small.network import SmallLlama, fast_type
from trainer.small.packing import Batch, Encoder, Row, packed
from trainer.small.recipe import SmallSft

_CALIBRATION = 120
"""Groups of each task that are measured for the mix."""


RowsFrom = Callable[[int], Iterator[tuple[Row, int]]]
"""Gives packed rows from a group on, each with the number of groups used up."""


@dataclass(slots=True)
class Progress:
    """How far a run is: optimizer steps, groups packed, tokens of rows, seconds."""

    steps: int = 0
    groups: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Run:
    """One training run in its folder: ``adapter.safetensors``, ``state.pt`` and ``log.jsonl``."""

    def __init__(self, recipe: SmallSft, network: SmallLlama, rows: RowsFrom) -> None:
        self._recipe, self._network, self._rows = recipe, network, rows
        self._adapters = network.adapters()
        self._optimizer = torch.optim.AdamW(
            self._adapters.values(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        self._workers = ThreadPoolExecutor(recipe.threads)
        self._stop = threading.Event()
        self.progress = Progress()

    def resume(self) -> None:
        """Go on from the folder's checkpoint, if it has one, or else from the recipe's adapter."""
        state = self._recipe.output / "state.pt"
        if state.exists():
            held: Any = torch.load(state, weights_only=True)
            self._optimizer.load_state_dict(held["optimizer"])
            self.progress = Progress(**held["progress"])
            for name, tensor in held["adapter"].items():
                self._adapters[name].data = tensor
        elif self._recipe.begin_from is not None:
            for name, tensor in load_file(self._recipe.begin_from).items():
                self._adapters[name].data = tensor.float()

    def train(self) -> Progress:
        """Train until the recipe's tokens are spent or SIGTERM; saves every ``save_s`` seconds and at the end."""
        signal.signal(signal.SIGTERM, self._stop_at_signal)
        saved = time.monotonic()
        rows = self._rows(self.progress.groups)
        most = self._recipe.steps or math.inf
        while self._done() < 1 and not self._stop.is_set() and self.progress.steps < most:
            began = time.monotonic()
            taken = list(islice(rows, self._recipe.rows))
            loss, norm = self._step([row for row, _ in taken])
            self.progress.steps += 1
            self.progress.groups = taken[-1][1]
            self.progress.tokens += sum(len(row.ids) for row, _ in taken)
            self.progress.seconds += time.monotonic() - began
            self._log(loss, norm, time.monotonic() - began, taken)
            if time.monotonic() - saved > self._recipe.save_s:
                self.save()
                saved = time.monotonic()
        self.save()
        return self.progress

    def _stop_at_signal(self, *_: object) -> None:
        self._stop.set()

    def save(self) -> None:
        """Write the checkpoint whole before it replaces the last one, and keep an adapter of this step."""
        folder = self._recipe.output
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: tensor.detach().contiguous() for name, tensor in self._adapters.items()}
        held = {"adapter": weights, "optimizer": self._optimizer.state_dict(), "progress": asdict(self.progress)}
        torch.save(held, folder / "new.pt")
        (folder / "new.pt").replace(folder / "state.pt")
        save_file(weights, folder / "adapter-fp32.safetensors")
        small = {name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}
        save_file(small, folder / f"adapter-{self.progress.tokens:09d}.safetensors")

    def _step(self, rows: list[Row]) -> tuple[float, float]:
        rate = self._rate()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        learned = sum(target >= 0 for row in rows for target in row.targets)
        starts = range(0, len(rows), self._recipe.rows_at_once)
        batches = [rows[start : start + self._recipe.rows_at_once] for start in starts]
        for parameter in self._adapters.values():
            parameter.grad = torch.zeros_like(parameter)
        total = 0.0
        for loss, gradients in self._workers.map(self._gradients, batches):
            total += loss / learned
            for parameter, gradient in zip(self._adapters.values(), gradients, strict=True):
                parameter.grad.add_(gradient, alpha=1 / learned)  # pyright: ignore[reportOptionalMemberAccess]
        norm = torch.nn.utils.clip_grad_norm_(self._adapters.values(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return total, norm.item()

    def _gradients(self, rows: list[Row]) -> tuple[float, tuple[Tensor, ...]]:
        """Return the summed loss of rows and its gradients.

        Each worker has one thread: beside other work, two threads that wait for each other in every layer do no more
        than one.
        """
        torch.set_num_threads(1)
        batch = Batch.of(rows, self._network.device, fixed=self._recipe.fixed_shapes)
        loss = reply_loss(self._network, batch)
        return loss.item(), torch.autograd.grad(loss, list(self._adapters.values()))

    def _done(self) -> float:
        """Return the share of the run that is behind it."""
        by_time = self.progress.seconds / self._recipe.seconds if self._recipe.seconds else 0.0
        return max(self.progress.tokens / self._recipe.tokens, by_time)

    def _rate(self) -> float:
        done = self._done()
        warm = min(1.0, (self.progress.steps + 1) / self._recipe.warmup_steps)
        return self._recipe.learning_rate * warm * (0.02 + 0.98 * (1 + math.cos(math.pi * min(1.0, done))) / 2)

    def _log(self, loss: float, norm: float, seconds: float, taken: list[tuple[Row, int]]) -> None:
        tokens = sum(len(row.ids) for row, _ in taken)
        tasks = Counter[str]()
        for row, _ in taken:
            tasks.update(row.tasks)
        line = {
            "step": self.progress.steps,
            "tokens": self.progress.tokens,
            "loss": round(loss, 4),
            "norm": round(norm, 3),
            "tokens_per_s": round(tokens / seconds, 1),
            "tasks": tasks,
        }
        self._recipe.output.mkdir(parents=True, exist_ok=True)
        with (self._recipe.output / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


def reply_loss(network: SmallLlama, batch: Batch) -> Tensor:
    """Return the weighted sum of the loss over the batch's targets."""
    hidden = network(batch.ids, batch.positions, batch.mask)
    at = batch.targets >= 0
    losses = F.cross_entropy(network.logits(hidden[at]).float(), batch.targets[at], reduction="none")
    return (losses * batch.weights[at]).sum()


def perplexity(network: SmallLlama, rows: Sequence[Row], *, rows_at_once: int, fixed: bool) -> float:
    """Return the perplexity of the rows' replies."""
    loss, learned = 0.0, sum(target >= 0 for row in rows for target in row.targets)
    filled = [*rows, *[Row(rows[0].length)] * (-len(rows) % rows_at_once if fixed else 0)]
    for start in range(0, len(filled), rows_at_once):
        batch = Batch.of(filled[start : start + rows_at_once], network.device, fixed=fixed)
        loss += reply_loss(network, batch).item()
    return math.exp(loss / learned)


def drawn_rows(recipe: SmallSft, encoder: Encoder) -> RowsFrom:
    """Return the rows of the recipe's data, drawn in this thread as they are needed. Raises as ``group_weights``."""
    weights = group_weights(recipe, encoder)

    def rows(start: int) -> Iterator[tuple[Row, int]]:
        groups = stream(recipe.english, recipe.seed, weights, recipe.sources, start)
        return ((row, start + number) for row, number in packed(map(encoder.group, groups), recipe.row_tokens))

    return rows


def group_weights(recipe: SmallSft, encoder: Encoder) -> dict[str, float]:
    """Return the shares of groups that give the tasks their shares of the tokens in rows: packing leaves some out.

    Raises ValueError for a task of which rows hold hardly a sample.
    """
    weights = dict[str, float]()
    for task, share in recipe.shares.items():
        groups = islice(stream(recipe.english, "weights", {task: 1.0}, recipe.sources), _CALIBRATION)
        rows = list(packed(map(encoder.group, groups), recipe.row_tokens))
        if not rows:
            raise ValueError(f"{_CALIBRATION} groups of {task!r} do not fill a row of {recipe.row_tokens} tokens")
        weights[task] = share * rows[-1][1] / sum(len(row.ids) for row, _ in rows)
    return weights


def new_run(recipe: SmallSft) -> Run:
    """Return the run of a recipe, resumed where its folder has a checkpoint. Raises OSError without the base."""
    from transformers import AutoTokenizer

    torch.manual_seed(recipe.seed)
    network = SmallLlama.load(recipe.base, dtype=fast_type())
    if recipe.fixed_shapes:
        network.compile_layers()
    tokenizers: Any = AutoTokenizer
    run = Run(recipe, network, drawn_rows(recipe, Encoder(tokenizers.from_pretrained(recipe.base))))
    run.resume()
    return run
