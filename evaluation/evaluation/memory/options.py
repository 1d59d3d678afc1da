"""The command line of ``memloop-evaluate memory``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from evaluation.arguments import positive
from evaluation.memory.gateway_memory import TOP_K
from evaluation.memory.memos import MEMOS_TOP_K, Protocol
from evaluation.memory.records import Row
from memloop_clients.endpoints import DIALECT_NAMES
from trainer.data.dialogues.formats import Format

_ROWS: tuple[Row, ...] = get_args(Row)
_WHAT = """\
Reads a user's LoCoMo, LongMemEval or HaluMem file and writes a scorecard; the last line is one JSON object. An
interrupted run resumes when the same command is run again."""


def _rows(text: str) -> tuple[Row, ...]:
    named = tuple(dict.fromkeys(text.split(",")))
    if unknown := set(named) - set(_ROWS):
        raise argparse.ArgumentTypeError(f"no such row: {', '.join(sorted(unknown))}")
    return tuple(row for row in _ROWS if row in named)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the options; argparse exits when they are invalid."""
    parser = argparse.ArgumentParser(prog="memloop-evaluate memory", description=_WHAT)
    add = parser.add_argument
    add("--format", choices=get_args(Format), required=True)
    add("--data", type=Path, required=True, help="a file of the format, JSON or JSONL")
    add("--out", type=Path, default=Path(".memloop/evaluate-memory"), help="folder of results, scorecard and figure")
    add("--rows", type=_rows, metavar="ROW,…", help="of ours,raw,full,off; all by default, ours for memos")
    add("--limit", type=positive, help="number of conversations (LongMemEval: questions), from the start of the file")
    add("--engine-url", help="base URL ending in /v1; without it only retrieval is measured")
    add("--model")
    add("--judge-url", help="the engine's by default")
    add("--judge-model", help="the model by default")
    add("--without-judge", action="store_true", help="right is an answer that matches the reference exactly")
    add("--in-chats", action="store_true", help="each question is a chat at the gateway with the memory of its row")
    add("--api-key-variable", help="environment variable that holds the engine's key")
    add("--judge-api-key-variable", help="the same for the judge")
    add("--gateway-url", help="a running gateway; default: start one with its data in --out")
    add("--writer", help="the model that writes the memories of --gateway-url, or at --writer-url; recorded")
    add("--writer-url", help="the writer's endpoint, for the gateway that this command starts; default: the engine's")
    add("--writer-key-variable", help="environment variable that holds the writer's key")
    add("--protocol", choices=get_args(Protocol), default="ours", help="memos: as MemOS's public scripts evaluate")
    add("--memos-checkout", type=Path, help="with --protocol memos: MemOS's code, for its prompts")
    add("--gateway-key-variable", help="environment variable that holds the gateway's key")
    add("--profile", help="memory-writer prompts of the gateway that this command starts")
    add("--top-k", type=positive, help=f"memories for an answer; default: {TOP_K}, memos: {MEMOS_TOP_K} of each view")
    add("--with-raw", action="store_true", help="row ours: raw turns beside the extracted memories")
    add(
        "--seed",
        type=int,
        action="append",
        help="seed for engine and judge; repeat the option to ask each question again",
    )
    add("--at-once", type=positive, default=8, help="concurrent conversations, and concurrent questions")
    add("--attempts", type=positive, default=4, help="of a call before it fails")
    add("--pause-s", type=float, default=1.0, help="pause after the first failed attempt; doubles")
    add("--timeout-s", type=float, default=600.0, help="of one call")
    add("--dialect", choices=DIALECT_NAMES, default="auto", help="the kind of endpoint")
    add("--price-in", type=float, help="dollars for a million input tokens")
    add("--price-out", type=float, help="dollars for a million output tokens")
    add("--forecast", action="store_true", help="print the expected calls, tokens and dollars, and run nothing")
    options = parser.parse_args(arguments)
    options.rows = options.rows or (_ROWS if options.protocol == "ours" else ("ours",))
    return options
