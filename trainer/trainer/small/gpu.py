"""The whole training on one GPU in minutes: examples, an evaluation, reinforcement, an evaluation, the adapter."""

# transformers' and torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from trainer.small.by_hand import by_hand
from trainer.small.documents import read_documents
from trainer.small.evaluate import held_out_samples, judge
from trainer.small.kinds import English
from trainer.small.measure import Asking
from trainer.small.mix import stream
from trainer.small.network import SmallLlama
from trainer.small.packing import Encoder, Row, packed, packed_whole
from trainer.small.recipe import SmallSft
from trainer.small.reinforce import Reinforcing, reinforce
from trainer.small.replies import chat_sample, write_base_replies
from trainer.small.train import RowsFrom, Run, group_weights, perplexity

_GROUPS_AT_ONCE = 400
_SFT_SHARE, _REINFORCE_SHARE = 0.4, 0.25
_SHARES = {"write": 0.25, "relate": 0.12, "answer": 0.22, "read": 0.35, "chat": 0.06}
_SECTION_WORDS = (80, 180, 350, 550, 720)


@dataclass(frozen=True, slots=True)
class GpuRun:
    """What to do with a base on a machine: ``minutes`` are for all of it, ``samples`` are evaluated of each task.

    ``documents`` of each of ``lengths`` (tokens) are read in an evaluation.
    """

    base: Path
    output: Path
    minutes: float
    samples: int = 300
    row_tokens: int = 1536
    rows: int = 32
    rows_at_once: int = 16
    prompts: int = 64
    chats: int = 2_000
    documents: int = 32
    lengths: tuple[int, ...] = (8_192, 32_768)
    processes: int = max(1, (os.cpu_count() or 2) - 1)

    def dry(self) -> GpuRun:
        """Return the same run with as little of everything as shows that it works, for a CPU."""
        return replace(
            self, samples=2, rows=2, rows_at_once=1, prompts=2, chats=4, documents=2, lengths=(1_200,), processes=1
        )


def train_on_gpu(settings: GpuRun) -> dict[str, object]:
    """Train, and return the figures after examples and after reinforcement. Runs on the CPU where no GPU is.

    The figures so far are in ``facts.json`` of the output from their moment on.
    """
    from transformers import AutoTokenizer

    began, device = time.monotonic(), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizers: Any = AutoTokenizer
    tokenizer = tokenizers.from_pretrained(settings.base)
    network = SmallLlama.load(settings.base).to(device)
    if device.type == "cuda":
        network.compile_layers()
    recipe = SmallSft(
        base=settings.base,
        output=settings.output,
        replies=settings.output / "base_replies.jsonl",
        shares=_SHARES,
        section_words=_SECTION_WORDS,
        kinds_of=("train",),
        tokens=1 << 40,
        seconds=settings.minutes * 60 * _SFT_SHARE,
        learning_rate=2e-3,
        rows=settings.rows,
        rows_at_once=settings.rows_at_once,
        row_tokens=settings.row_tokens,
        save_s=1 << 20,
        fixed_shapes=device.type == "cuda",
        threads=1,
    )
    asking = Asking(network, tokenizer, at_once=256 if device.type == "cuda" else 24)
    settings.output.mkdir(parents=True, exist_ok=True)
    facts: dict[str, object] = {"device": str(device), "samples": settings.samples}

    def note(**found: object) -> None:
        facts.update(found, seconds=round(time.monotonic() - began, 1))
        (settings.output / "facts.json").write_text(json.dumps(facts), "utf-8")
        print(json.dumps(found), file=sys.stderr)

    def chat_perplexity() -> float:
        fixed = recipe.fixed_shapes
        return round(perplexity(network, chat_rows, rows_at_once=settings.rows_at_once, fixed=fixed), 3)

    drawn = held_out_samples(settings.samples)

    def measured() -> dict[str, object]:
        read = read_documents(
            asking, settings.base / "tokenizer.json", lengths=settings.lengths, count=settings.documents
        )
        figures = {**judge(drawn, asking(drawn)).report(), **by_hand(asking, most=settings.samples).report()}
        return {**figures, "documents": read, "chat perplexity": chat_perplexity()}

    chats = write_base_replies(settings.output / "base_replies.jsonl", asking.ended, English("train"), settings.chats)
    held_out = settings.output / "held_out_replies.jsonl"
    write_base_replies(held_out, asking.ended, English("held_out"), settings.chats // 8)
    encoder = Encoder(tokenizer)
    chat = [encoder.tokens(chat_sample(*turn)) for turn in English("held_out", replies_file=held_out).replies]
    chat_rows = packed_whole([[tokens] for tokens in chat], settings.row_tokens)
    note(base_replies=chats, held_out_replies=len(chat), base_perplexity=chat_perplexity())
    run = Run(recipe, network, rows_of_processes(recipe, encoder, settings.processes))
    note(examples=asdict(run.train()))
    _save(network, settings.output / "adapter-examples.safetensors")
    note(after_examples=measured())
    log = settings.output / "reinforce.jsonl"

    def report(line: dict[str, float]) -> None:
        with log.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(line) + "\n")

    updates = reinforce(
        network,
        encoder,
        Reinforcing(
            prompts=settings.prompts,
            row_tokens=settings.row_tokens,
            rows_at_once=settings.rows_at_once,
            section_words=_SECTION_WORDS,
            fixed_shapes=device.type == "cuda",
        ),
        decode=tokenizer.decode,
        end=tokenizer.eos_token_id,
        seconds=settings.minutes * 60 * _REINFORCE_SHARE,
        report=report,
    )
    _save(network, settings.output / "adapter.safetensors")
    note(updates=updates)
    note(after_reinforcement=measured())
    return facts


def rows_of_processes(recipe: SmallSft, encoder: Encoder, processes: int) -> RowsFrom:
    """Return the rows of the recipe's data, drawn ahead by other processes, in an order that is always the same."""
    weights = group_weights(recipe, encoder)

    def rows(start: int) -> Iterator[tuple[Row, int]]:
        firsts = count(start, _GROUPS_AT_ONCE)
        with get_context("spawn").Pool(processes) as pool:
            drawing = deque(
                pool.apply_async(_drawn, (recipe, weights, first)) for first in islice(firsts, 3 * processes)
            )
            while True:
                drawn = drawing.popleft().get()
                drawing.append(pool.apply_async(_drawn, (recipe, weights, next(firsts))))
                yield from drawn

    return rows


def _drawn(recipe: SmallSft, weights: dict[str, float], first: int) -> list[tuple[Row, int]]:
    from transformers import AutoTokenizer

    tokenizers: Any = AutoTokenizer
    encoder = Encoder(tokenizers.from_pretrained(recipe.base))
    groups = islice(stream(recipe.english, recipe.seed, weights, recipe.sources, first), _GROUPS_AT_ONCE)
    return [(row, first + number) for row, number in packed(map(encoder.group, groups), recipe.row_tokens)]


def _save(network: SmallLlama, file: Path) -> None:
    weights = {name: held.detach().to("cpu", torch.bfloat16) for name, held in network.adapters().items()}
    save_file(weights, file)
