"""``python -m trainer tiny-rows``: the tiny world's rows for reinforcement learning, to train on and held out."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import get_args

from memloop.profiles import load_profile
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.rows import AgentName
from trainer.data.tiny_rows import Hardness, tiny_rows
from trainer.tiny.documents import NEAR_MISSES, TRAINED_CHUNKS
from trainer.tiny.prose import book


def main(arguments: Sequence[str] | None = None) -> None:
    """Write ``LOOP-train.parquet`` and ``LOOP-held_out.parquet`` into a folder."""
    chosen = _parser().parse_args(arguments)
    profile, rng = load_profile("tiny"), random.Random(chosen.seed)
    hardness = Hardness(chosen.chunks, chosen.distractors, chosen.near_misses)
    schema = schemas.WRITING if chosen.loop == "memreader" else schemas.READING
    for part, wanted in (("train", chosen.rows), ("held_out", chosen.held_out)):
        rows = tiny_rows(rng, chosen.loop, profile, book(part), hardness)
        file = chosen.out / f"{chosen.loop}-{part}.parquet"
        print(f"{write_parquet(islice(rows, wanted), file, schema)} rows in {file}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer tiny-rows", description=__doc__)
    parser.add_argument("--loop", choices=get_args(AgentName), required=True)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    parser.add_argument("--rows", type=int, default=2048, help="to train on")
    parser.add_argument("--held-out", type=int, default=128)
    parser.add_argument("--chunks", type=int, default=TRAINED_CHUNKS, help="of each document")
    parser.add_argument("--distractors", type=float, help="per chunk; else a few, by the loop")
    parser.add_argument("--near-misses", type=float, default=NEAR_MISSES, help="share of distractors that nearly fit")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    main()
