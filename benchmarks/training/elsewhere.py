"""``python -m benchmarks.training.elsewhere BEFORE AFTER``: reads tasks that neither policy was trained on.

RULER's families in the tiny model's words, each over several haystacks: one needle, one among others, one among needles
that nearly fit, and a question of two hops. Both checkpoints read the same documents. Prints a table and, as the last
line, one JSON object; ``--keep`` writes the table.
"""

import argparse
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import TypedDict, get_args

import orjson

from benchmarks.comparing import Share, paired_gain
from benchmarks.kept import FOLDER, show, write_dated
from benchmarks.training.reading import Loop, Scores, read_all
from memloop.profiles import load_profile
from trainer.tiny.documents import TRAINED_CHUNKS, Document, random_document
from trainer.tiny.prose import Haystack, haystack

KEPT = FOLDER / "training-elsewhere.json"
_CORES = 2


@dataclass(frozen=True, slots=True)
class Family:
    """Facts beside those that are asked for: how many in a chunk, and the share of them that nearly fit."""

    distractors: float = 0.0
    near_misses: float = 0.0
    loop: Loop = "memagent"


FAMILIES = {
    "niah_single": Family(),
    "niah_multikey": Family(distractors=3.0),
    "niah_multikey, near misses": Family(distractors=3.0, near_misses=1.0),
    "qa_2": Family(distractors=0.2, loop="memreread"),
}
HAYSTACKS = get_args(Haystack)


class Row(TypedDict):
    """Strict answers of both policies in percent, and the gain in points with its interval of 95 %."""

    family: str
    haystack: str
    documents: int
    before: float
    after: float
    gain: float
    low: float
    high: float


def documents_in(family: Family, around: Haystack, *, times: int, count: int, seed: int) -> list[Document]:
    """Build the documents of a family in a haystack; the facts are the same in every haystack."""
    rng, tokens = random.Random(f"{seed} {family} {times}"), load_profile("tiny").budget.chunk_tokens
    return [
        random_document(
            random.Random(rng.random()),
            chunks=times * TRAINED_CHUNKS,
            chunk_tokens=tokens,
            hops=2 if family.loop == "memreread" else 1,
            distractors_per_chunk=family.distractors,
            near_misses=family.near_misses,
            prose=haystack(around),
        )
        for _ in range(count)
    ]


def row_of(family: str, around: str, before: Sequence[Scores], after: Sequence[Scores]) -> Row:
    """Compare both policies' answers to the same documents."""
    strict = [[each.strict for each in scores] for scores in (before, after)]
    shares, gain = [Share.of(each).percent for each in strict], paired_gain(*strict)
    return Row(
        family=family,
        haystack=around,
        documents=len(before),
        before=shares[0],
        after=shares[1],
        gain=gain.points,
        low=gain.low,
        high=gain.high,
    )


def _scores(checkpoint: Path, cell: tuple[str, Haystack], *, times: int, count: int, seed: int) -> list[Scores]:
    family = FAMILIES[cell[0]]
    made = documents_in(family, cell[1], times=times, count=count, seed=seed)
    return read_all(checkpoint, made, loop=family.loop)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, and print the table and the last line."""
    options = _parser().parse_args(arguments)
    cells = list(product(FAMILIES, HAYSTACKS))
    size = {"times": options.times, "count": options.documents, "seed": options.seed}
    with ProcessPoolExecutor(_CORES, mp_context=get_context("spawn")) as cores:
        before = cores.map(partial(_scores, options.before, **size), cells)
        after = cores.map(partial(_scores, options.after, **size), cells)
        rows = [row_of(*cell, *both) for cell, *both in zip(cells, before, after, strict=True)]
    show("tasks and haystacks outside training", [dict(row) for row in rows])
    if options.keep:
        write_dated(KEPT, {"times": options.times, "rows": rows})
    print(orjson.dumps({"benchmark": "training.elsewhere", "times": options.times, "rows": rows}).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.training.elsewhere")
    parser.add_argument("before", type=Path, help="the checkpoint that the run started from")
    parser.add_argument("after", type=Path, help="the exported policy")
    parser.add_argument("--times", type=int, default=2, help="the documents' length, in training lengths")
    parser.add_argument("--documents", type=int, default=64, help="in each cell of the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/")
    return parser


if __name__ == "__main__":
    main()
