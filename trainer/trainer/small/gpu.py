"""The whole training on one GPU in minutes: examples, an evaluation, reinforcement, an evaluation, the adapter."""

# transformers' and torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from trainer.small.evaluate import held_out_samples, judge
from trainer.small.kinds import English
from trainer.small.measure import Asking
from trainer.small.mix import stream
from trainer.small.network import SmallLlama, layers_of
from trainer.small.packing import Encoder, Row, packed
from trainer.small.recipe import SmallSft
from trainer.small.reinforce import Reinforcing, reinforce
from trainer.small.replies import write_base_replies
from trainer.small.train import RowsFrom, Run, group_weights

_GROUPS_AT_ONCE = 400
_SFT_SHARE, _REINFORCE_SHARE = 0.45, 0.3
_SHARES = {"write": 0.25, "relate": 0.08, "answer": 0.27, "read": 0.35, "chat": 0.05}


@dataclass(frozen=True, slots=True)
class GpuRun:
    """What to do with a base on a machine: ``minutes`` are for all of it, ``samples`` are evaluated of each task."""

    base: Path
    output: Path
    minutes: float
    samples: int = 300
    row_tokens: int = 1024
    rows: int = 48
    rows_at_once: int = 16
    prompts: int = 64
    chats: int = 1_000
    processes: int = max(1, (os.cpu_count() or 2) - 1)

    def dry(self) -> GpuRun:
        """Return the same run with as little of everything as shows that it works, for a CPU."""
        return replace(self, samples=2, rows=2, rows_at_once=1, prompts=2, chats=4, processes=1)


def train_on_gpu(settings: GpuRun) -> dict[str, object]:
    """Train, and return the figures after examples and after reinforcement. Runs on the CPU where no GPU is."""
    from transformers import AutoTokenizer

    began, device = time.monotonic(), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizers: Any = AutoTokenizer
    tokenizer = tokenizers.from_pretrained(settings.base)
    network = SmallLlama.load(settings.base).to(device)
    if device.type == "cuda":
        for layer in layers_of(network):
            layer.compile()
    recipe = SmallSft(
        base=settings.base,
        output=settings.output,
        replies=settings.output / "base_replies.jsonl",
        shares=_SHARES,
        section_words=(80, 180, 350, 550),
        kinds_of=("train",),
        tokens=1 << 40,
        seconds=settings.minutes * 60 * _SFT_SHARE,
        learning_rate=2e-3,
        rows=settings.rows,
        rows_at_once=settings.rows_at_once,
        row_tokens=settings.row_tokens,
        fixed_shapes=device.type == "cuda",
        threads=1,
    )
    asking = Asking(network, tokenizer, at_once=256 if device.type == "cuda" else 24)
    settings.output.mkdir(parents=True, exist_ok=True)
    write_base_replies(settings.output / "base_replies.jsonl", asking.ended, English("train"), settings.chats)
    drawn = held_out_samples(settings.samples)
    progress = Run(recipe, network, rows_of_processes(recipe, Encoder(tokenizer), settings.processes)).train()
    facts: dict[str, object] = {"examples": asdict(progress), "after examples": judge(drawn, asking(drawn)).report()}
    _save(network, settings.output / "adapter-examples.safetensors")
    log = settings.output / "reinforce.jsonl"

    def report(line: dict[str, float]) -> None:
        with log.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(line) + "\n")

    facts["updates"] = reinforce(
        network,
        Encoder(tokenizer),
        Reinforcing(prompts=settings.prompts),
        decode=tokenizer.decode,
        end=tokenizer.eos_token_id,
        seconds=settings.minutes * 60 * _REINFORCE_SHARE,
        report=report,
    )
    facts["after reinforcement"] = judge(drawn, asking(drawn)).report()
    _save(network, settings.output / "adapter.safetensors")
    return {**facts, "device": str(device), "seconds": round(time.monotonic() - began, 1)}


def rows_of_processes(recipe: SmallSft, encoder: Encoder, processes: int) -> RowsFrom:
    """Return the rows of the recipe's data, drawn ahead by other processes, in an order that is always the same."""
    weights = group_weights(recipe, encoder)

    def rows(start: int) -> Iterator[tuple[Row, int]]:
        tasks = ((recipe, weights, first) for first in count(start, _GROUPS_AT_ONCE))
        with get_context("spawn").Pool(processes) as pool:
            # A pool takes all of its tasks at once: it gets them in waves, so that data never runs far ahead.
            while True:
                for drawn in pool.imap(_drawn, list(islice(tasks, 4 * processes))):
                    yield from drawn

    return rows


def _drawn(task: tuple[SmallSft, dict[str, float], int]) -> list[tuple[Row, int]]:
    from transformers import AutoTokenizer

    recipe, weights, first = task
    tokenizers: Any = AutoTokenizer
    encoder = Encoder(tokenizers.from_pretrained(recipe.base))
    groups = islice(stream(recipe.english, recipe.seed, weights, first), _GROUPS_AT_ONCE)
    encoded = ([encoder.tokens(sample) for sample in group] for group in groups)
    return [(row, first + number) for row, number in packed(encoded, recipe.row_tokens)]


def _save(network: SmallLlama, file: Path) -> None:
    weights = {name: held.detach().to("cpu", torch.bfloat16) for name, held in network.adapters().items()}
    save_file(weights, file)
