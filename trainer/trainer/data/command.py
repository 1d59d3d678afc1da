"""``python -m trainer data …``: makes data sets. Every command ends with one line of JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, cast, get_args

from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.wire.chat import Json
from memloop.wire.errors import MemloopError
from trainer.data.bench import bench_synthesis
from trainer.data.encyclopedia import write_encyclopedia
from trainer.data.endpoint import add_endpoint_options, models_of
from trainer.data.hotpot import questions
from trainer.data.json_rows import DataError
from trainer.data.long_questions import LongQuestions
from trainer.data.measured import Stopwatch
from trainer.data.no_context import NoContextFilter, write_kept
from trainer.data.progress import Progress
from trainer.data.rows import AgentName
from trainer.data.synthesis import Size
from trainer.objectives.answer_reward import AnswerScore

Act: TypeAlias = Callable[[argparse.Namespace], dict[str, object]]


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


def _synthesise(options: argparse.Namespace) -> dict[str, object]:
    splitter = TokenizerSplitter(options.tokenizer.read_bytes()) if options.tokenizer else EstimatingSplitter()
    wanted = LongQuestions(
        asked=options.questions,
        pools=tuple(options.pool or ()),
        size=Size(documents=options.documents, tokens=options.tokens, count=splitter.count),
        train=options.items,
        dev=options.dev,
        seed=options.seed,
        agent=options.agent,
        data_source=options.data_source,
        license=options.license,
    )
    made = wanted.make(options.out, options=_told(options), progress=Progress())
    size = sum((options.out / f"{split}.parquet").stat().st_size for split in made)
    return {"rows": made, "documents": options.documents, "tokens": options.tokens, "mib": round(size / (1 << 20), 1)}


def _encyclopedia(options: argparse.Namespace) -> dict[str, object]:
    write_encyclopedia(options.out, options.questions, seed=options.seed)
    return {"questions": options.questions, "out": str(options.out)}


def _filter(options: argparse.Namespace) -> dict[str, object]:
    return asyncio.run(_filtered(options))


async def _filtered(options: argparse.Namespace) -> dict[str, object]:
    journal_at = options.out.with_name(f"{options.out.name}.journal")
    async with models_of(options) as models:
        no_context = NoContextFilter(models, samples=options.samples, score=options.score, places=options.at_once)
        with no_context.open_journal(journal_at) as journal:
            resumed = len(journal.records)
            asked = Progress().over(questions(options.questions), total=None, what="questions")
            await no_context.judge(asked, journal)
            kept, dropped = write_kept(options.questions, journal, options.out)
            refused = sum(bool(verdict.refused) for verdict in journal.records)
    return {"kept": kept, "dropped": dropped, "refused": refused, "resumed_from": resumed, "out": str(options.out)}


def _bench(options: argparse.Namespace) -> dict[str, object]:
    runs: list[Json] = []
    for run in bench_synthesis(options.items, documents=options.documents, seed=options.seed):
        runs.append(run)
        print(json.dumps(run))
    return {"benchmark": "synthesis", "runs": runs}


def _told(options: argparse.Namespace) -> dict[str, object]:
    """The options as the card tells them: of files their names alone."""
    told = {name: value for name, value in vars(options).items() if name not in ("act", "out") and value is not None}
    return {name: _without_folders(value) for name, value in told.items()}


def _without_folders(value: object) -> object:
    if isinstance(value, list):
        return [_without_folders(each) for each in cast(list[object], value)]
    return value.name if isinstance(value, Path) else value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trainer data", description="make data sets to train on")
    commands = parser.add_subparsers(required=True)

    def command(name: str, act: Act, help_: str) -> Callable[..., object]:
        made = commands.add_parser(name, help=help_)
        made.set_defaults(act=act, name=name)
        return made.add_argument

    _add_synthesise(command("synthesise", _synthesise, "long documents around a HotpotQA or 2Wiki file's questions"))
    _add_filter(command("filter", _filter, "drop questions that models answer without documents"))
    add = command("encyclopedia", _encyclopedia, "made-up questions in HotpotQA's shape, the same for a seed")
    add("--questions", type=_positive, default=1000)
    add("--seed", type=int, default=0)
    add("--out", type=Path, required=True, help="the JSONL file")
    add = command("bench", _bench, "time and peak memory of synthesis at several sizes, on made-up questions")
    add("--items", type=_positive, nargs="+", default=[1000, 10_000])
    add("--documents", type=_positive, default=200)
    add("--seed", type=int, default=0)
    return parser


def _add_synthesise(add: Callable[..., object]) -> None:
    add("--questions", type=Path, required=True, help="a file in HotpotQA's shape, JSON or JSONL")
    add(
        "--pool",
        type=Path,
        action="append",
        help="a file to draw strangers from; else the questions' own; again for more",
    )
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


def _add_filter(add: Callable[..., object]) -> None:
    add("--questions", type=Path, required=True, help="a file in HotpotQA's shape, JSON or JSONL")
    add_endpoint_options(add, flag="--ask", help_="an endpoint's base URL and model; again for each model")
    add("--samples", type=_positive, default=2, help="answers of each model, at most")
    add("--score", choices=get_args(AnswerScore), default="sub_em", help="by which one right answer is seen")
    add("--at-once", type=_positive, default=16, help="questions")
    add("--out", type=Path, required=True, help="JSONL of the questions that are left; the verdicts stand beside it")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
