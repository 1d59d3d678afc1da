"""Trains the tiny model from scratch: Muon on the matrices, AdamW on the rest, bfloat16 arithmetic, a linear decay."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._dynamo import config as dynamo
from torch.nn import functional as F

from trainer.tiny.batches import BUCKETS, Batch, Feed, Row, Source, collate
from trainer.tiny.curriculum import FULL, PHASES, Mix, Phases, mix_at
from trainer.tiny.network import Shape, TinyQwen3
from trainer.tiny.wiring import wire


@dataclass(frozen=True, slots=True)
class Budget:
    """The length of training. Steps, not seconds, so that a seed gives the same model.

    Curriculum and learning rate follow ``steps``; ``stop_at`` ends the run before their end. Of ``reads_of`` times as
    many reading turns the hardest are trained; ``sprinkled`` prose contains words of the whole vocabulary. Turns are in
    the prompts of ``profile``, and those of ``examined`` are scored.
    """

    steps: int
    batch_tokens: int
    shape: Shape
    matrix_rate: float = 0.005
    other_rate: float = 0.003
    warmup: int = 50
    decay_from: float = 0.5
    eval_every: int = 400
    eval_rows: int = 1500
    stop_at: int | None = None
    phases: Phases = PHASES
    reads_of: int = 1
    sprinkled: bool = False
    profile: str = "tiny"
    examined: Mix = FULL

    @property
    def last(self) -> int:
        """Return the step that ends the run."""
        return self.stop_at or self.steps


class Optimizers:
    """Muon for the matrices of the blocks, AdamW for embeddings and gains; one schedule for both."""

    def __init__(self, network: TinyQwen3, budget: Budget) -> None:
        matrices = [p for name, p in network.named_parameters() if p.dim() == 2 and "embed" not in name]
        others = [p for name, p in network.named_parameters() if p.dim() != 2 or "embed" in name]
        self._muon = torch.optim.Muon(
            matrices, lr=budget.matrix_rate, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw = torch.optim.AdamW(others, lr=budget.other_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
        self._budget = budget

    def step(self, number: int) -> None:
        """Update with the learning rate of this step, and clear the gradients."""
        scale = self._scale(number)
        for optimizer, rate in ((self._muon, self._budget.matrix_rate), (self._adamw, self._budget.other_rate)):
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def _scale(self, number: int) -> float:
        progress = number / self._budget.steps
        falling = (1.0 - progress) / (1.0 - self._budget.decay_from)
        return min(1.0, (number + 1) / self._budget.warmup, max(falling, 0.0))


def loss_of(network: nn.Module, batch: Batch) -> Tensor:
    """Return the weighted mean cross-entropy over the batch's targets."""
    return (_token_losses(network, batch) * batch.weight).sum() / batch.weight.sum()


def _token_losses(network: nn.Module, batch: Batch) -> Tensor:
    with torch.autocast(batch.ids.device.type, dtype=torch.bfloat16):
        logits = network(batch.ids, batch.at)
    return F.cross_entropy(logits.float(), batch.goal, reduction="none")


@torch.no_grad()
def hardest(network: nn.Module, batch: Batch, count: int) -> Batch:
    """Return the rows with the least certain token: online hard example mining (arXiv:1604.03540)."""
    losses = _token_losses(network, batch)
    worst = losses.new_zeros(len(batch.kinds)).scatter_reduce(0, batch.row, losses, "amax")
    return batch.only(worst.topk(count).indices.sort().values)


@torch.no_grad()
@torch.compiler.set_stance("force_eager")
def exact_turns(
    network: nn.Module, rows: list[Row], *, device: str = "cpu", batch_tokens: int = 8192
) -> dict[str, tuple[int, int]]:
    """Count right and all turns by kind. A reply is right if greedy decoding would give exactly it."""
    tally: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for length in BUCKETS:
        shorter = max((bucket for bucket in BUCKETS if bucket < length), default=0)
        fitting = [row for row in rows if shorter < len(row.ids) <= length]
        size = batch_tokens // length
        for start in range(0, len(fitting), size):
            batch = collate(fitting[start : start + size], length).to(device)
            with torch.autocast(device, dtype=torch.bfloat16):
                wrong = network(batch.ids, batch.at).argmax(-1) != batch.goal
            bad = set(batch.row[wrong].tolist())
            for number, kind in enumerate(batch.kinds):
                tally[kind][0] += number not in bad
                tally[kind][1] += 1
    return {kind: (right, total) for kind, (right, total) in sorted(tally.items())}


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a run: `loss` is the mean since the last report, `exact` right and all turns by kind."""

    step: int
    seconds: int
    tokens: int
    loss: float
    exact: dict[str, tuple[int, int]]


class Run:
    """One training run. The seed fixes weights, data and their order; threads and devices may round differently."""

    def __init__(
        self, source: Source, held_out: Source, budget: Budget, *, seed: int, device: str, compiled: bool
    ) -> None:
        torch.manual_seed(seed)
        self.network = TinyQwen3(budget.shape)
        wire(self.network)
        self.network.to(device)
        if compiled:
            dynamo.recompile_limit = 2 * len(BUCKETS)  # a graph for each, with gradients and without
            self.network.model.compile(dynamic=False)
        self._budget, self._device = budget, device
        self._feed = Feed(source, random.Random(seed), batch_tokens=budget.batch_tokens, reads_of=budget.reads_of)
        self._optimizers = Optimizers(self.network, budget)
        self._eval_rows = eval_rows(held_out, budget.examined, seed=seed + 1, count=budget.eval_rows)

    def reports(self) -> Iterator[Progress]:
        """Train through the budget, yielding every report."""
        losses: list[float] = []
        tokens, started = 0, time.perf_counter()
        for number in range(self._budget.last):
            batch = self._batch(number)
            loss = loss_of(self.network, batch)
            loss.backward()
            self._optimizers.step(number)
            tokens += batch.ids.numel()
            losses.append(float(loss.detach()))
            if (number + 1) % self._budget.eval_every == 0 or number + 1 == self._budget.last:
                exact = exact_turns(self.network, self._eval_rows, device=self._device)
                seconds = round(time.perf_counter() - started)
                yield Progress(number + 1, seconds, tokens, round(sum(losses) / len(losses), 4), exact)
                losses.clear()

    def _batch(self, number: int) -> Batch:
        drawn = self._feed.next(mix_at(number / self._budget.steps, self._budget.phases)).to(self._device)
        count = self._budget.batch_tokens // drawn.ids.shape[1]
        return drawn if len(drawn.kinds) == count else hardest(self.network, drawn, count)


def eval_rows(held_out: Source, mix: Mix, *, seed: int, count: int) -> list[Row]:
    """Draw turns of the mix over held-out prose."""
    rng = random.Random(seed)
    return held_out.encoder.rows([held_out.draw(rng, mix) for _ in range(count)])
