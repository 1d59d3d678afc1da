"""Makes the checkpoint from a seed: tokenizer, training run, files."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from tokenizers import Tokenizer

from memloop.profiles import Profile, load_profile
from trainer.tiny.batches import Encoder, Source, prompt_text
from trainer.tiny.card import write_card
from trainer.tiny.card_data import TRAINING, TrainingLog, read_training
from trainer.tiny.curriculum import HARD, HARDEST_OF, HASTY, SHORT, WRITING
from trainer.tiny.draw import draw
from trainer.tiny.export import export, tokenizer_of, weights_of
from trainer.tiny.network import Shape, load
from trainer.tiny.prose import book, sprinkled
from trainer.tiny.tokenizer import VOCABULARY, build_tokenizer, extended, plain_words, prompt_lines
from trainer.tiny.train import Budget, Progress, Run

BudgetName = Literal["cpu", "robust", "writer", "gpu", "early", "hasty", "smoke"]

BUDGETS: dict[BudgetName, Budget] = {
    "cpu": Budget(steps=8_000, batch_tokens=4096, shape=Shape(VOCABULARY), eval_every=1000),
    # Starts from `cpu` and trains on rare failures; gently, or the rarer turns are lost.
    "robust": Budget(
        steps=3_000,
        batch_tokens=4096,
        shape=Shape(VOCABULARY),
        matrix_rate=0.0005,
        other_rate=0.0003,
        decay_from=0.0,
        eval_every=1000,
        phases=HARD,
        reads_of=HARDEST_OF,
        sprinkled=True,
    ),
    # Starts from `robust` and learns to relate memories, in prompts of its own; what it does not train, it forgets.
    "writer": Budget(
        steps=5_000,
        batch_tokens=4096,
        shape=Shape(VOCABULARY),
        matrix_rate=0.002,
        other_rate=0.001,
        decay_from=0.4,
        eval_every=500,
        eval_rows=600,
        phases=((1.0, WRITING),),
        profile="tiny-writer",
        examined=WRITING,
    ),
    # Not run yet: no accelerator was available.
    "gpu": Budget(steps=20_000, batch_tokens=32_768, shape=Shape(VOCABULARY, hidden=192, layers=6, intermediate=512)),
    # Stopped while sections are still short: the start of reinforcement learning on whole documents.
    "early": Budget(
        steps=2_400, batch_tokens=4096, shape=Shape(VOCABULARY), eval_every=800, eval_rows=600, stop_at=800
    ),
    # Starts from `robust` and imitates a hasty reader: a start of reinforcement learning that holds what it has read.
    "hasty": Budget(
        steps=160,
        batch_tokens=4096,
        shape=Shape(VOCABULARY),
        matrix_rate=0.0005,
        other_rate=0.0003,
        warmup=10,
        decay_from=0.0,
        eval_every=160,
        eval_rows=200,
        phases=HASTY,
    ),
    "smoke": Budget(steps=8, batch_tokens=1024, shape=Shape(VOCABULARY), eval_every=8, warmup=2, eval_rows=8),
}


def make(
    out: Path, *, budget: BudgetName, seed: int, device: str, start: Path | None = None, compiled: bool = True
) -> TrainingLog:
    """Train from scratch, or from the checkpoint `start`, and write the checkpoint into `out` (which may be the same).

    `device` is `auto`, `cpu` or `cuda`.
    """
    out.mkdir(parents=True, exist_ok=True)
    profile, chosen = load_profile(BUDGETS[budget].profile), _device(device)
    tokenizer = extended(tokenizer_of(start), profile) if start else tokenizer_for(profile, seed=seed)
    plan = replace(BUDGETS[budget], shape=replace(BUDGETS[budget].shape, vocab=tokenizer.get_vocab_size()))
    encoder = Encoder(tokenizer)
    prose = book("train")
    if plan.sprinkled:
        prose = sprinkled(random.Random(seed), prose, plain_words(tokenizer))
    held_out = Source(profile, book("held_out"), encoder)
    run = Run(Source(profile, prose, encoder), held_out, plan, seed=seed, device=chosen, compiled=compiled)
    if start:
        load(run.network, weights_of(start))
    log = TrainingLog(
        budget=budget,
        seed=seed,
        device=chosen,
        profile=profile.ref,
        parameters=sum(parameter.numel() for parameter in run.network.parameters()),
        chunk_tokens=profile.budget.chunk_tokens,
        steps=plan.last,
        batch_tokens=plan.batch_tokens,
        start=read_training(start) if start else None,
    )
    for report in run.reports():
        log = log.after(report.step, report.seconds, report.tokens, report.loss, report.exact)
        export(out, run.network.state_dict(), plan.shape, tokenizer)
        (out / TRAINING).write_text(log.model_dump_json() + "\n", "utf-8")
        print(describe(report), flush=True)
    write_card(out)
    return log


def tokenizer_for(profile: Profile, *, seed: int) -> Tokenizer:
    """Train the tokenizer of a profile on prose and on examples of every role."""
    lines = re.compile("|".join(re.escape(line) for line in sorted(prompt_lines(profile), key=len, reverse=True)))
    return build_tokenizer(profile, _texts(profile, lines, random.Random(seed)), seed=seed)


def _texts(profile: Profile, lines: re.Pattern[str], rng: random.Random, count: int = 6000) -> Iterator[str]:
    for _ in range(count):
        example = draw(rng, SHORT, profile, book("train"))
        yield from lines.split(prompt_text(example))
        yield example.completion


def _device(name: str) -> str:
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def describe(report: Progress) -> str:
    """Format two lines of the log."""
    shares = " ".join(f"{kind}={right / total:.3f}" for kind, (right, total) in report.exact.items())
    return f"step {report.step} {report.seconds} s {report.tokens} tokens loss {report.loss}\n  {shares}"
