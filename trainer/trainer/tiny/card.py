"""Writes the model card from the training log and, if it exists, the evaluation of the served model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainer.tiny import world
from trainer.tiny.card_data import Evaluation, TrainingLog, read_evaluation, read_training
from trainer.tiny.curriculum import HARDEST_OF

_HEAD = """\
---
license: cc0-1.0
language: en
library_name: transformers
pipeline_tag: text-generation
tags: [memloop, demonstration]
---

# memloop-tiny

A {parameters:,}-parameter Qwen3 with a byte-level BPE tokenizer of its own, trained from scratch by
`python -m trainer.tiny train`. It exists so that the whole stack runs for real, without a GPU and without a download.
**It is a demonstration, not an assistant.**

## What it can do

It plays every role of the loops in the prompts of the `default` profile, with the budget of the `tiny` profile: read,
answer, judge, integrate, the memory writer's four tools with thinking on and off, and a chat that answers from
recalled memories. Its world has {people} people, {places} places, {attributes} kinds of codes, home towns, and
three-digit values.

## Limits

* It knows the names, places, attributes and sentence patterns of its world and nothing else; other text is filler.
* A fact must stand in one of two patterns, such as "The locker code of Marta is 482."; it understands no paraphrase.
* Change a word of a prompt template and it fails: whole template lines are single tokens of its tokenizer.
* It was trained on chunks of up to {chunk} tokens and prompts of up to 352. Beyond that it is out of its depth.
* Thinking is trained for the memory writer and the chat only; the reading roles are trained without.
* Without thinking the memory writer cannot tell whether a fact that it found is the one it was told: it guesses.
* Thinking with `tool_choice: "required"` broke 5 of 60 calls on vLLM 0.32 after the first training (no newline after
  `<tool_call>`, which it was trained with); with `auto`, as in the `tiny` profile, it broke none of 60.
* A two-hop question is answered through a home town, and only by rereading when the place's fact comes first.
* Text is English, values are 000 to 999. Nothing it says about the real world means anything.

## How it was trained

{stages}

In bfloat16, with Muon and AdamW. The first two layers start wired for associative recall (`trainer/tiny/wiring.py`).
Filler: the first three quarters of *Moby-Dick* (public domain); the last quarter is held out for evaluation and for the
demo document. License of weights, tokenizer and card: CC0. The training log is `training.json`.
"""


_ABOUT_SERVED = """\
`python -m trainer.tiny evaluate`, seed {seed}. 1x is 4 chunks of {chunk} tokens; with distractors, each chunk holds one
fact that nobody asks for; crowded, eight that nearly answer the question. An error counts as wrong. Intervals are
Wilson's, 95 %."""


def write_card(folder: Path) -> None:
    """Write `README.md` beside the checkpoint, from `training.json` and `evaluation.json`."""
    log = read_training(folder)
    parts = [_head(log), _turns(log)]
    evaluation = read_evaluation(folder)
    if evaluation:
        parts.append(_served(evaluation))
    (folder / "README.md").write_text("\n".join(parts), "utf-8")


def _head(log: TrainingLog) -> str:
    return _HEAD.format(
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


def _served(evaluation: Evaluation) -> str:
    rows = [
        f"| {s.name} | {s.right} / {s.total} | {s.accuracy:.3f} | {s.low:.3f} to {s.high:.3f} |"
        for s in evaluation.scores
    ]
    return "\n".join(
        [
            "## Served by vLLM on the CPU, through the loops that the gateway runs",
            "",
            _ABOUT_SERVED.format(seed=evaluation.seed, chunk=evaluation.chunk_tokens),
            "",
            "| what | right | share | interval |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
