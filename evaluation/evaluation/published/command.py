"""``memloop-evaluate published SYSTEM``: a publication's table, made under its conditions, beside what it prints.

Prompts come from your checkout of the publication's code. ``--engine-url`` reads at a running engine, ``--serve``
starts each named model in turn. Writes ``published.md``; the last line is one JSON object. The same command resumes.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from evaluation.arguments import engines, positive
from evaluation.published.conditions import READING
from evaluation.published.figures import PublishedTable, published_tables
from evaluation.published.memory import Model, Tables, data_of, profile_of
from evaluation.published.memory import outcome_of as memory_outcome
from evaluation.published.reading import at_served, conditions_of, outcome_of, prompts_of, setup_of
from evaluation.published.report import Outcome, write
from evaluation.published.serving import Served, while_served
from evaluation.ruler.fleet import Effort
from evaluation.ruler.items import documents_by_number, source_of
from evaluation.ruler.run import Evaluation
from inference.profile_import.sources import ImportRefused
from memloop.profiles import ProfileError
from memloop.wire.errors import MemloopError
from memloop_cli.errors import CliError
from memloop_clients.endpoints import DIALECT_NAMES
from trainer.data.json_rows import DataError

_NO_PROFILE: Final = "default"
"""The reads bring their own prompts: the launcher's are not used."""


def main(arguments: Sequence[str]) -> None:
    """Make the table. Exits with 2 when data or options are invalid, 3 when a server is unavailable."""
    options = _parser().parse_args(arguments)
    try:
        print(options.act(options))
    except (DataError, ImportRefused, ProfileError, ValidationError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except CliError as error:
        print(f"{error}\n{error.detail}\nRun the same command again to resume.", file=sys.stderr)
        sys.exit(3)
    except MemloopError as error:
        print(f"{error}\nRun the same command again to resume.", file=sys.stderr)
        sys.exit(3)


def _read(options: argparse.Namespace) -> str:
    urls, key_variable = (), options.api_key_variable
    if not options.serve:
        urls, key_variable = engines(options.engine_url, options.api_key_variable)
        if not options.model:
            raise DataError("--engine-url needs --model, the id that it serves")
    if options.reader == "direct" and options.system != "memagent":
        raise DataError("--reader direct is for the baselines of MemAgent's table")
    table = published_tables(options.figures)[options.system]
    conditions = conditions_of(options.system, options.reader)
    prompts = prompts_of(options.system, conditions, options.checkout, options.profile)
    tokenizer: Path | None = options.tokenizer
    if tokenizer is not None and tokenizer.is_dir():
        tokenizer /= "tokenizer.json"
    setup = setup_of(
        conditions,
        prompts,
        model=options.model or "",
        tokenizer_json=tokenizer.read_bytes() if tokenizer else None,
        key_variable=key_variable,
        timeout_s=options.timeout_s,
        dialect=options.dialect,
        thinking={"on": True, "off": False, None: None}[options.thinking],
    )
    evaluation = Evaluation(
        sources=tuple(source_of(given) for given in options.data),
        urls=urls,
        setup=setup,
        out=options.out,
        seeds=tuple(dict.fromkeys(options.seed or conditions.seeds)),
        effort=Effort(options.at_once),
        limit=options.limit,
        ray=options.ray,
        suffixes=prompts.suffixes,
        documents=documents_by_number(options.hotpot) if options.hotpot else (),
    )
    outcome = partial(outcome_of, conditions=conditions, table=table, prompts=prompts)
    if not options.serve:
        return write(options.out, options.system, table, [outcome(evaluation)])

    def of_served(served: Served, folder: Path) -> Outcome:
        return outcome(at_served(replace(evaluation, out=folder), served))

    return _in_turn(options, table, of_served, profile=_NO_PROFILE)


def _remember(options: argparse.Namespace) -> str:
    if options.engine_url and not options.model:
        raise DataError("--engine-url needs --model, the id that it serves")
    table = published_tables(options.figures)[options.system]
    profile = options.profile or profile_of(options.snapshot, options.out)
    answers = Model(options.answers_url, options.answers_model, options.answers_key_variable)
    judge = Model(
        options.judge_url or options.answers_url,
        options.judge_model or options.answers_model,
        options.judge_key_variable or options.answers_key_variable,
    )
    more = ["--at-once", str(options.at_once), "--timeout-s", str(options.timeout_s)]
    more += ["--limit", str(options.limit)] if options.limit else []
    tables = Tables(data_of(options.data), answers, judge, profile, options.memos_checkout, more)
    if not options.serve:
        writer = Model(options.engine_url, options.model, options.api_key_variable)
        return write(options.out, options.system, table, [memory_outcome(writer, tables, options.out, table)])

    def of_served(served: Served, folder: Path) -> Outcome:
        return memory_outcome(Model(served.url, served.model), tables, folder, table)

    return _in_turn(options, table, of_served, profile=profile)


def _in_turn(options: argparse.Namespace, table: PublishedTable, work: Callable[..., Outcome], *, profile: str) -> str:
    """Serve the models one after another; the table is written after each, and keeps the others if one fails."""
    printed, outcomes = "", list[Outcome]()
    for model in options.serve:
        folder = options.out / re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-")
        outcomes.append(while_served(model, folder, partial(work, folder=folder), profile=profile))
        printed = write(options.out, options.system, table, outcomes)
    return printed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate published", description=__doc__)
    systems = parser.add_subparsers(dest="system", required=True)
    for system in READING:
        _add_reading(systems.add_parser(system, help=f"the reading table of {system}"))
    _add_memory(systems.add_parser("memreader", help="LoCoMo, LongMemEval and HaluMem by MemOS's protocol"))
    return parser


def _add_reading(reading: argparse.ArgumentParser) -> None:
    reading.set_defaults(act=_read)
    prompts = reading.add_mutually_exclusive_group(required=True)
    prompts.add_argument("--checkout", type=Path, help="of the publication's code: its prompts are read from it")
    prompts.add_argument("--profile", help="other prompts: a built-in profile, or a folder")
    models = reading.add_mutually_exclusive_group()
    models.add_argument("--engine-url", action="append", help="base URL ending in /v1; repeatable; default: $URL")
    models.add_argument(
        "--serve", action="append", metavar="MODEL", help="serve it here; repeatable, one after another"
    )
    add = reading.add_argument
    add("--model", help="the id at --engine-url")
    add("--tokenizer", type=Path, help="with --engine-url: the model's tokenizer.json, or its folder")
    add("--data", action="append", required=True, help="as of memloop-evaluate ruler run; repeatable")
    add("--hotpot", type=Path, help="the HotpotQA file with the texts of data that holds numbers of documents")
    add("--reader", choices=("loop", "direct"), default="loop", help="direct: MemAgent's baselines, in one prompt")
    add("--thinking", choices=("on", "off"), help="direct: for models that think")
    add("--figures", type=Path, help="published figures in the place of ours, in the form of figures.toml")
    add("--api-key-variable", help="environment variable that holds the endpoints' key")
    add("--dialect", choices=DIALECT_NAMES, default="auto", help="the kind of endpoint")
    add("--seed", type=int, action="append", help="runs in the place of the publication's; repeatable")
    add("--limit", type=positive, help="maximum number of items per task and size")
    add("--at-once", type=positive, default=8, help="concurrent items per engine")
    add("--timeout-s", type=float, default=900.0, help="of one call")
    add("--ray", nargs="?", const="auto", help="spread items over a Ray cluster: its address, auto, or local")
    add("--out", type=Path, default=Path(".memloop/published"), help="folder of results and table")


def _add_memory(memory: argparse.ArgumentParser) -> None:
    memory.set_defaults(act=_remember)
    prompts = memory.add_mutually_exclusive_group(required=True)
    prompts.add_argument("--snapshot", type=Path, help="of the checkpoint, with its card: the writer's prompts")
    prompts.add_argument("--profile", help="other prompts of the writer: a built-in profile, or a folder")
    writers = memory.add_mutually_exclusive_group(required=True)
    writers.add_argument("--engine-url", help="the writer's base URL, ending in /v1")
    writers.add_argument("--serve", action="append", metavar="MODEL", help="serve the writer here; repeatable")
    add = memory.add_argument
    add("--model", help="the writer's id at --engine-url")
    add("--api-key-variable", help="environment variable that holds the writer's key")
    add("--memos-checkout", type=Path, help="MemOS's code, for its prompts; HaluMem needs none")
    add("--data", action="append", required=True, metavar="FORMAT=FILE", help="locomo, longmemeval, halumem")
    add("--answers-url", required=True, help="base URL of the model that answers, ending in /v1")
    add("--answers-model", required=True, help="published: gpt-4o-mini")
    add("--answers-key-variable", help="environment variable that holds its key")
    add("--judge-url", help="the answering model's by default")
    add("--judge-model", help="published: gpt-4o-mini")
    add("--judge-key-variable", help="environment variable that holds the judge's key")
    add("--figures", type=Path, help="published figures in the place of ours, in the form of figures.toml")
    add("--limit", type=positive, help="conversations of each file (LongMemEval: questions)")
    add("--at-once", type=positive, default=8, help="concurrent conversations, and concurrent questions")
    add("--timeout-s", type=float, default=600.0, help="of one call")
    add("--out", type=Path, default=Path(".memloop/published"), help="folder of results and table")
