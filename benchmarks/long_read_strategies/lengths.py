"""``python -m benchmarks.long_read_strategies.lengths``: exact match at 8K to 3.5M tokens; the last line is JSON.

One tiny model per core reads in its own process, in bfloat16 as vLLM serves it: without engine start or HTTP, millions
of calls are affordable. Plain MemAgent runs at every length, then its segments, as far as the budget allows. ``--keep``
writes the result and the plot.
"""

import argparse
import asyncio
import operator
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce
from multiprocessing import get_context
from pathlib import Path

import orjson
import torch

from benchmarks.kept import show
from benchmarks.long_read_strategies.measure import (
    DISTRACTORS_PER_CHUNK,
    PARALLEL,
    PLAIN,
    Row,
    Way,
    document_of,
    measured,
)
from benchmarks.long_read_strategies.results import LENGTHS, SHORT, headline, keep_lengths, kept_lengths
from memloop.profiles import load_profile
from trainer.rollout.cpu.chat import BatchedModel
from trainer.rollout.cpu.engine import Size

CHECKPOINT = Path("services/inference/models/memloop-tiny")
_AT_ONCE = 64
_LEAST_READS = 4
_SAFETY = 1.3


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, print the table and the last line."""
    options = _parser().parse_args(arguments)
    ends_at = time.monotonic() + options.budget_s
    with ProcessPoolExecutor(options.cores, mp_context=get_context("spawn")) as cores:
        rows = [row.cells() for row in _rows(cores, options, ends_at)]
    show("lengths", rows)
    if options.keep:
        keep_lengths(rows)
    print(orjson.dumps({"benchmark": "long_read_lengths", **headline(rows, kept_lengths()), "lengths": rows}).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.long_read_strategies.lengths")
    parser.add_argument("--budget-s", type=float, default=600)
    parser.add_argument("--reads", type=int, default=16, help="documents of each length")
    parser.add_argument("--short-reads", type=int, default=128, help=f"documents of {SHORT:,} tokens")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/")
    return parser


def _rows(cores: ProcessPoolExecutor, options: argparse.Namespace, ends_at: float) -> Iterator[Row]:
    """Yield rows of growing length, each with as many documents as are likely to fit the budget."""
    for way in (PLAIN, PARALLEL):
        seconds_per_token = 0.0
        for tokens in LENGTHS:
            wanted = options.short_reads if tokens == SHORT else options.reads
            left_s = ends_at - time.monotonic()
            affordable = int(left_s / (_SAFETY * seconds_per_token * tokens)) if seconds_per_token else wanted
            if (reads := min(wanted, affordable)) >= _LEAST_READS:
                began = time.monotonic()
                yield _row(cores, way, tokens, range(reads), options)
                seconds_per_token = (time.monotonic() - began) / (reads * tokens)


def _row(cores: ProcessPoolExecutor, way: Way, tokens: int, numbers: range, options: argparse.Namespace) -> Row:
    """Measure the documents of a length, an equal share on each core."""
    shares = [numbers[core :: options.cores] for core in range(options.cores)]
    read = partial(_read, way, tokens, options.seed)
    return reduce(operator.add, cores.map(read, [share for share in shares if share]))


def _read(way: Way, tokens: int, seed: int, numbers: Sequence[int]) -> Row:
    """Read the documents of these numbers in a separate process."""
    torch.set_num_threads(1)
    return asyncio.run(_read_all(way, tokens, seed, numbers))


async def _read_all(way: Way, tokens: int, seed: int, numbers: Sequence[int]) -> Row:
    profile = load_profile("tiny")
    asked = partial(document_of, profile, tokens=tokens, hops=way.hops, distractors_per_chunk=DISTRACTORS_PER_CHUNK)
    documents = [asked(seed=seed, number=number) for number in numbers]
    size = Size(rows=_AT_ONCE, length=profile.budget.window_tokens)
    model = BatchedModel.load(CHECKPOINT, size, dtype=torch.bfloat16)
    try:
        return await measured(model, profile, way, documents, tokens=tokens, alone=False)
    finally:
        model.close()


if __name__ == "__main__":
    main()
