"""``python -m trainer data …``: makes data sets. Every command ends with one line of JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, get_args

from memloop.wire.errors import MemloopError
from trainer.data import actions
from trainer.data.dialogues.formats import Format
from trainer.data.endpoint import add_endpoint_options
from trainer.data.json_rows import DataError
from trainer.data.measured import Stopwatch
from trainer.data.no_context import ANYWHERE
from trainer.data.rows import AgentName
from trainer.data.ruler import TASKS
from trainer.objectives.answer_reward import AnswerScore
from trainer.tiny.documents import NEAR_MISSES, TRAINED_CHUNKS
from trainer.tiny.prose import Haystack

Add: TypeAlias = Callable[..., object]
Act: TypeAlias = Callable[[argparse.Namespace], actions.Facts]


def main(arguments: Sequence[str] | None = None) -> None:
    """Make what was asked for. Ends with 2 when data or options are wrong, or an endpoint fails again and again."""
    options = _parser().parse_args(arguments)
    watch = Stopwatch()
    try:
        facts = options.act(options)
    except (DataError, ValueError, OSError, MemloopError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(watch.line(command=f"data {options.name}", **facts))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trainer data", description="make data sets to train on")
    commands = parser.add_subparsers(required=True)

    def command(name: str, act: Act, help_: str) -> Add:
        made = commands.add_parser(name, help=help_)
        made.set_defaults(act=act, name=name)
        return made.add_argument

    _synthesise(command("synthesise", actions.synthesise, "long documents around a HotpotQA or 2Wiki file's questions"))
    _filter(command("filter", actions.filter_questions, "drop questions that models answer without documents"))
    _encyclopedia(command("encyclopedia", actions.encyclopedia, "made-up questions in HotpotQA's shape"))
    _world(command("world", actions.world, "right turns of every role in the tiny world, to imitate"))
    _tiny_rows(command("tiny-rows", actions.tiny_world_rows, "the tiny world's tasks for reinforcement learning"))
    _ruler(
        command(
            "ruler", actions.ruler, "RULER's tasks from our own prose, to evaluate; with --train others to train on"
        )
    )
    _memreader(command("memreader", actions.memreader, "memory decisions of a teacher on a user's dialogues"))
    _from_traces(command("from-traces", actions.from_traces, "production traces as rows to imitate and as tasks"))
    _bench(command("bench", actions.bench, "time and peak memory of synthesis at several sizes, on made-up questions"))
    return parser


def _synthesise(add: Add) -> None:
    add("--questions", type=Path, required=True, help="a file in HotpotQA's shape, JSON or JSONL")
    add("--pool", type=Path, action="append", help="a file to draw strangers from; else the questions' own; repeatable")
    add("--documents", type=_positive, help="in each item")
    add("--tokens", type=_positive, help="in each item, instead of a number of documents")
    add("--tokenizer", type=Path, help="tokenizer.json that --tokens are counted by; else by an estimate")
    add("--items", type=_positive, default=8192, help="to train on")
    add("--dev", type=int, default=128, help="to hold out, of the questions after those")
    add("--agent", choices=get_args(AgentName), default="memagent")
    add("--data-source", default="hotpotqa", help="its name in the rows")
    add("--license", default="other", help="of the questions, for the card")
    add("--seed", type=int, default=0)
    add("--out", type=Path, required=True, help="folder of the Parquet files and the card")


def _filter(add: Add) -> None:
    add("--questions", type=Path, required=True, help="a file in HotpotQA's shape, JSON or JSONL")
    add_endpoint_options(add, flag="--ask", help_="an endpoint's base URL and model; again for each model")
    add("--samples", type=_positive, default=2, help="answers of each model, at most")
    scores = (*get_args(AnswerScore), ANYWHERE)
    add("--score", choices=scores, default="sub_em", help="by which one right answer is seen; anywhere: MemAgent's")
    add("--at-once", type=_positive, default=16, help="questions")
    add("--out", type=Path, required=True, help="JSONL of the questions that are left; the verdicts stand beside it")


def _encyclopedia(add: Add) -> None:
    add("--questions", type=_positive, default=1000)
    add("--seed", type=int, default=0)
    add("--out", type=Path, required=True, help="the JSONL file")


def _world(add: Add) -> None:
    add("--profile", default="tiny", help="prompt profile: a built-in name, or a folder")
    add("--rows", type=_positive, default=4096)
    add("--dev", type=_positive, default=256, help="to hold out, over prose that the others never show")
    add("--seed", type=int, default=0)
    add("--out", type=Path, required=True, help="folder of the Parquet files and the card")


def _tiny_rows(add: Add) -> None:
    add("--loop", choices=get_args(AgentName), required=True)
    add("--out", type=Path, required=True, help="folder of LOOP-train.parquet and LOOP-held_out.parquet")
    add("--rows", type=int, default=2048, help="to train on")
    add("--held-out", type=int, default=128)
    add("--chunks", type=int, default=TRAINED_CHUNKS, help="of each document")
    add("--distractors", type=float, help="per chunk; else a few, by the loop")
    add("--near-misses", type=float, default=NEAR_MISSES, help="share of distractors that nearly fit")
    add("--seed", type=int, default=0)


def _ruler(add: Add) -> None:
    add("--task", choices=TASKS, action="append", help="again for each; all without")
    add("--tokens", type=_positive, nargs="+", default=[8192])
    add("--haystack", choices=get_args(Haystack), help="around needles and chains; else the task's own")
    add("--items", type=_positive, default=100, help="of each task and size, to evaluate: validation.jsonl, .parquet")
    add("--train", type=_positive, help="other items of each task and size, to train on: train.parquet")
    add("--tokenizer", type=Path, help="tokenizer.json that --tokens are counted by; else by an estimate")
    add("--seed", type=int, default=0)
    add("--out", type=Path, required=True, help="folder of SIZE/TASK/…")


def _memreader(add: Add) -> None:
    add("--format", choices=get_args(Format), required=True)
    add("--data", type=Path, required=True, help="the user's LoCoMo, LongMemEval or HaluMem file")
    add_endpoint_options(add, flag="--teacher", help_="the teacher's base URL and model")
    add("--profile", default="default", help="prompt profile: a built-in name, or a folder")
    add("--window", type=_positive, help="turns per decision; default: the profile's turns_per_decision")
    add("--limit", type=_positive, help="conversations")
    add("--out", type=Path, required=True, help="folder of train.parquet, tasks.parquet and the paid replies")


def _from_traces(add: Add) -> None:
    add("--traces", type=Path, action="append", required=True, help="JSONL of GET /v1/admin/traces; again for more")
    add("--out", type=Path, required=True, help="folder of imitation.parquet, writing.parquet and reading.parquet")


def _bench(add: Add) -> None:
    add("--items", type=_positive, nargs="+", default=[1000, 10_000])
    add("--documents", type=_positive, default=200)
    add("--seed", type=int, default=0)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
