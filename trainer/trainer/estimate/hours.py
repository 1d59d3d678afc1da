"""Estimates a run's hours: the engines' reading and writing, and the trainer's passes.

    reading    forward operations of all prompts / (GPUs · peak · MFU of reading); no prefix is taken for shared
    writing    a step of an engine moves its weights and the cache of its rows once: rows / that time · straggling
    passes     forward 2 operations per weight and token; update 6, of adapters alone 4; layers run again 2; each of
               reference and old log-probabilities 2; attention beside; / (GPUs · peak · MFU of training)

Validation and the start are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainer.estimate.assumptions import Assumptions
from trainer.estimate.hardware import GPUS
from trainer.estimate.memory import Memory
from trainer.estimate.run import Run
from trainer.estimate.turns import Turn, turns_of

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Hours:
    """Seconds of one step by part, and the run. ``rows`` and ``tokens`` (prompts, replies) are of a step."""

    reading_s: float
    writing_s: float
    passes_s: float
    overhead_s: float
    rows: float
    prompt_tokens: float
    reply_tokens: float
    rows_at_once: float
    steps: int
    gpus: int

    @property
    def step_s(self) -> float:
        """Return the seconds of a step."""
        return self.reading_s + self.writing_s + self.passes_s + self.overhead_s

    @property
    def hours(self) -> float:
        """Return the hours of the whole run on the clock."""
        return self.steps * self.step_s / _HOUR_S

    @property
    def gpu_hours(self) -> float:
        """Return the hours of all GPUs."""
        return self.hours * self.gpus


def hours_of(run: Run, memory: Memory, assumed: Assumptions) -> Hours:
    """Apply the formulas above. Raises ValueError when the engine's cache cannot hold a row."""
    if memory.cached_rows < 1:
        raise ValueError("the rollout engine has no room for a row, so its hours cannot be estimated")
    turns = turns_of(run.loop, assumed)
    rollouts = run.prompts * run.group
    peak = run.gpus * GPUS[assumed.gpu].tflops * 1e12
    written = rollouts * sum(turn.count * turn.reply for turn in turns)
    at_once = _rows_at_once(run, memory, turns)
    return Hours(
        reading_s=rollouts * _forward(run, turns, replies=False) / (peak * assumed.prefill_mfu),
        writing_s=written / _written_a_second(run, at_once, turns, assumed),
        passes_s=rollouts * _passes(run) * _forward(run, turns, replies=True) / (peak * assumed.train_mfu),
        overhead_s=assumed.step_overhead_s,
        rows=rollouts * sum(turn.count for turn in turns),
        prompt_tokens=rollouts * sum(turn.count * turn.prompt for turn in turns),
        reply_tokens=written,
        rows_at_once=at_once,
        steps=run.steps or assumed.rows // run.prompts * run.epochs,
        gpus=run.gpus,
    )


def _forward(run: Run, turns: list[Turn], *, replies: bool) -> float:
    """Return the operations of a forward pass over one rollout's rows, with or without their replies."""
    return sum(run.shape.forward_flops(turn.count, turn.prompt + turn.reply * replies) for turn in turns)


def _passes(run: Run) -> float:
    """Return the forward-pass equivalents of all passes over a row; a backward pass is two, one with frozen weights."""
    updates = run.updates
    backward = 1 if updates.adapter_rank else 2
    return 1 + backward + updates.recompute + updates.reference + updates.old


def _rows_at_once(run: Run, memory: Memory, turns: list[Turn]) -> float:
    """Return one engine's concurrent rows: the minimum of the existing, the permitted, and those that fit its cache."""
    replicas = run.gpus / run.engine.tensor
    room = memory.cache / (run.shape.cached_bytes / run.engine.tensor * _mean_row(turns))
    return max(1.0, min(run.prompts * run.group / replicas, run.engine.most_rows, room))


def _written_a_second(run: Run, at_once: float, turns: list[Turn], assumed: Assumptions) -> float:
    """Return the written tokens per second of all engines together."""
    moved = 2 * run.shape.parameters + at_once * _mean_row(turns) * run.shape.cached_bytes
    bandwidth = GPUS[assumed.gpu].bandwidth * 1e12 * assumed.bandwidth_share * run.engine.tensor
    return at_once * bandwidth / moved * assumed.straggling * run.gpus / run.engine.tensor


def _mean_row(turns: list[Turn]) -> float:
    """Return the mean tokens of a row during its reply: the prompt and half the reply, over written tokens."""
    written = sum(turn.count * turn.reply for turn in turns)
    return sum(turn.count * turn.reply * (turn.prompt + turn.reply / 2) for turn in turns) / written
