"""Trains, evaluates and demonstrates the tiny model: `python -m trainer.tiny train | evaluate | stress |
demo-document`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from memloop.chunking import TokenizerSplitter
from memloop.profiles import load_profile
from trainer.tiny.card_data import TRAINING
from trainer.tiny.demo import demo_document, write_demo
from trainer.tiny.evaluate_engine import evaluate_engine
from trainer.tiny.recipe import BUDGETS, make
from trainer.tiny.stress import stress

_CHECKPOINT = Path("services/inference/models/memloop-tiny")
_EXAMPLE = Path("examples/long-read")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run the command."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.command == "train":
        if chosen.start and not (chosen.start / TRAINING).is_file():
            parser.error(f"{chosen.start} holds no checkpoint of this command ({TRAINING})")
        if chosen.budget in ("robust", "writer", "hasty") and not chosen.start:
            parser.error(f"--budget {chosen.budget} starts from a checkpoint: name it with --start")
        make(chosen.out, budget=chosen.budget, seed=chosen.seed, device=chosen.device, start=chosen.start)
    elif chosen.command == "evaluate":
        asyncio.run(
            evaluate_engine(
                chosen.engine_url,
                model=chosen.model,
                profile_name=chosen.profile,
                seed=chosen.seed,
                per_kind=chosen.per_kind,
                documents=chosen.documents,
                save_to=chosen.card,
                wait_s=chosen.wait_s,
            )
        )
    elif chosen.command == "stress":
        for kind, (right, total) in stress(chosen.checkpoint, turns=chosen.turns, seed=chosen.seed).items():
            print(f"{kind}: {total - right} of {total} turns wrong")
    else:
        splitter = TokenizerSplitter(chosen.tokenizer.read_bytes())
        budget = load_profile("tiny").budget
        write_demo(chosen.out, demo_document(splitter, chunk_tokens=budget.chunk_tokens), splitter)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer.tiny", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train from scratch or from a checkpoint, and write the checkpoint")
    train.add_argument("--out", type=Path, required=True)
    train.add_argument("--start", type=Path, help="a checkpoint of the same shape to start from")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    train.add_argument("--budget", choices=tuple(BUDGETS), default="cpu")
    evaluate = commands.add_parser("evaluate", help="score a served model, by role and by whole loops")
    evaluate.add_argument("--engine-url", required=True, help="ends where /chat/completions begins")
    evaluate.add_argument("--model", default="memloop-tiny")
    evaluate.add_argument("--profile", choices=("tiny", "tiny-writer"), default="tiny")
    evaluate.add_argument("--seed", type=int, default=1)
    evaluate.add_argument("--per-kind", type=int, default=40, help="turns of each kind")
    evaluate.add_argument(
        "--documents", type=int, default=40, help="documents of each length; 0 for a model that reads none"
    )
    evaluate.add_argument("--wait-s", type=float, default=0.0, help="how long the engine may take to start")
    evaluate.add_argument("--card", type=Path, help="a checkpoint folder: write evaluation.json and the card there")
    rare = commands.add_parser("stress", help="count rare failures among thousands of reading turns")
    rare.add_argument("--checkpoint", type=Path, default=_CHECKPOINT)
    rare.add_argument("--turns", type=int, default=5000, help="of each kind")
    rare.add_argument("--seed", type=int, default=1)
    demo = commands.add_parser("demo-document", help="write the demo's document and questions")
    demo.add_argument("--out", type=Path, default=_EXAMPLE)
    demo.add_argument("--tokenizer", type=Path, default=_CHECKPOINT / "tokenizer.json")
    return parser
