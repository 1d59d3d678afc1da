"""Writes the model card from the training log and, if it exists, the evaluation of the served model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainer.tiny import card_texts as texts
from trainer.tiny import world
from trainer.tiny.card_data import Evaluation, TrainingLog, read_evaluation, read_training
from trainer.tiny.curriculum import HARDEST_OF


def write_card(folder: Path) -> None:
    """Write `README.md` beside the checkpoint, from `training.json` and `evaluation.json`."""
    log = read_training(folder)
    parts = [_head(log), _turns(log)]
    evaluation = read_evaluation(folder)
    if evaluation:
        parts.append(_served(evaluation, log))
    (folder / "README.md").write_text("\n".join(parts), "utf-8")


def _head(log: TrainingLog) -> str:
    about = texts.WRITER if log.budget == "writer" else texts.READER
    return (texts.FRONT + about + texts.TRAINED).format(
        parameters=log.parameters,
        people=len(world.PEOPLE),
        places=len(world.PLACES),
        attributes=len(world.PERSON_CODES) + len(world.PLACE_CODES),
        chunk=log.chunk_tokens,
        stages="\n".join(_stages(log)),
    )


def _stages(log: TrainingLog) -> Iterator[str]:
    """Yield one line for each run, the first one first."""
    if log.start:
        yield from _stages(log.start)
    start = "--start DIR " if log.start else ""
    hard = f", of the reading turns the hardest of {HARDEST_OF}" if log.budget == "robust" else ""
    where = "one CPU core" if log.device == "cpu" else "one GPU"
    yield (
        f"* `--out DIR {start}--seed {log.seed} --budget {log.budget}`: {log.steps:,} steps of {log.batch_tokens:,} "
        f"tokens ({log.tokens / 1e6:.1f}M in all), {log.seconds / 60:.0f} minutes on {where}{hard}"
    )


def _turns(log: TrainingLog) -> str:
    rows = [f"| {kind} | {right} / {total} | {right / total:.3f} |" for kind, (right, total) in log.exact.items()]
    return "\n".join(
        [
            "## Exact turns at the end of training (held-out prose, greedy)",
            "",
            "| turn | right | share |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _served(evaluation: Evaluation, log: TrainingLog) -> str:
    about = texts.WRITER_SERVED if log.budget == "writer" else texts.READER_SERVED
    rows = [
        f"| {s.name} | {s.right} / {s.total} | {s.accuracy:.3f} | {s.low:.3f} to {s.high:.3f} |"
        for s in evaluation.scores
    ]
    return "\n".join(
        [
            "## Served by vLLM on the CPU, through the loops that the gateway runs",
            "",
            about.format(seed=evaluation.seed, chunk=evaluation.chunk_tokens),
            "",
            "| what | right | share | interval |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
