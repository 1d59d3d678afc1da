"""``memloop-evaluate ruler run --data … --engine-url … --model …``: the last line is one JSON object.

An interrupted run resumes when the same command is run again. ``memloop-evaluate ruler synthesise --hotpot FILE`` makes
RULER-HQA items of any size, and ``memloop-evaluate ruler tiny`` items that the shipped tiny model can read.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from evaluation.arguments import engines, positive
from evaluation.ruler.fleet import Effort
from evaluation.ruler.items import DEFAULT_SUFFIXES, HQA, OOD_TASKS, documents_by_number, source_of
from evaluation.ruler.readers import ReaderKind, Setup
from evaluation.ruler.run import Evaluation, evaluate, to_stderr
from evaluation.ruler.synthesis import synthesise
from evaluation.ruler.tiny_items import TASK, tiny_items
from memloop.profiles import profile_files
from memloop.profiles.profile import ProfileError
from memloop.wire.chat import Json
from memloop.wire.long_read import Strategy
from memloop.wire.reading import ReadingOptions
from memloop_clients.endpoints import DIALECT_NAMES
from trainer.data.hotpot import questions as questions_of
from trainer.data.json_rows import DataError

_SUFFIX_HELP = "text after each question of a task (2wiki, global_reasoning), in the place of ours; repeatable"


def main(arguments: Sequence[str]) -> None:
    """Run the chosen subcommand. Exits with 2 when data or options are invalid."""
    options = _parser().parse_args(arguments)
    try:
        options.act(options)
    except (DataError, ProfileError, ValidationError, OSError) as error:
        to_stderr(str(error))
        sys.exit(2)


def _run(options: argparse.Namespace) -> None:
    evaluation = _evaluation(options)
    line = evaluate(evaluation, report=to_stderr)
    print((evaluation.out / "results.md").read_text("utf-8"))
    print(line)


def _evaluation(options: argparse.Namespace) -> Evaluation:
    if options.profile is None and options.reader != "gateway":
        _refuse_our_prompts(options.model)
    urls, key_variable = engines(options.engine_url, options.api_key_variable)
    setup = Setup(
        kind=options.reader,
        model=options.model,
        profile_files=profile_files(options.profile or "default"),
        tokenizer_json=options.tokenizer.read_bytes() if options.tokenizer else None,
        strategy=options.strategy,
        options=ReadingOptions.model_validate_json(options.options),
        max_rereads=options.max_rereads,
        chunk_tokens=options.chunk_tokens,
        memory_tokens=options.memory_tokens,
        key_variable=key_variable,
        timeout_s=options.timeout_s,
        dialect=options.dialect,
        window_tokens=options.window,
        thinking={"on": True, "off": False, None: None}[options.thinking],
        reply_tokens=options.reply_tokens,
        sends_seed=not options.unseeded,
    )
    return Evaluation(
        sources=tuple(source_of(given) for given in options.data),
        urls=urls,
        setup=setup,
        out=options.out,
        seeds=tuple(dict.fromkeys(options.seed or [0])),
        effort=Effort(options.at_once, options.attempts),
        limit=options.limit,
        ray=options.ray,
        suffixes={**DEFAULT_SUFFIXES, **dict(options.question_suffix)},
        documents=documents_by_number(options.hotpot) if options.hotpot else (),
    )


def _refuse_our_prompts(model: str) -> None:
    """Raise DataError for a checkpoint that was trained on its authors' prompts: ours would change its score."""
    from inference.registry import read_registry  # not on the path of a Ray job, which names its profile

    card = read_registry().get(model)
    if card is not None and card.prompts:
        raise DataError(
            f"{model} was trained on its authors' prompts: --profile FOLDER of `memloop-inference profile import"
            f" {card.prompts}` (docs/how-to/published-prompts.md), with --tokenizer its tokenizer.json;"
            " or --profile default for Memloop's prompts"
        )


def _synthesise(options: argparse.Namespace) -> None:
    asked = list(questions_of(options.hotpot))
    options.out.mkdir(parents=True, exist_ok=True)
    made: dict[str, int] = {}
    for documents in options.documents:
        path = options.out / f"eval_hqa_{documents}.jsonl"
        items = synthesise(asked, documents=documents, seed=options.seed, count=options.items)
        made[str(path)] = _write(items, path)
        to_stderr(f"{path}: {made[str(path)]} items")
    print(json.dumps({"benchmark": "ruler synthesise", "items": made}))


def _tiny(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    made: dict[str, int] = {}
    for tokens in options.tokens:
        path = options.out / f"{TASK}_{tokens}.jsonl"
        made[str(path)] = _write(tiny_items(tokens=tokens, seed=options.seed, count=options.items), path)
        to_stderr(f"{path}: {made[str(path)]} items")
    print(json.dumps({"benchmark": "ruler tiny", "items": made}))


def _write(items: Iterable[Json], path: Path) -> int:
    """Write the items and return their number."""
    with path.open("w", encoding="ascii") as file:
        return sum(bool(file.write(json.dumps(item) + "\n")) for item in items)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate ruler")
    commands = parser.add_subparsers(required=True)
    _add_run(commands.add_parser("run", help="read a user's items and score the answers"))
    _add_synthesise(commands.add_parser("synthesise", help="make RULER-HQA items from a HotpotQA file"))
    _add_tiny(commands.add_parser("tiny", help="make items of the shipped tiny model's world"))
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.set_defaults(act=_run)
    add = run.add_argument
    add("--data", action="append", required=True, help="a JSONL or JSON file, or TASK:SIZE=FILE; repeatable")
    add("--hotpot", type=Path, help="the HotpotQA file with the texts of data that holds numbers of documents")
    add("--engine-url", action="append", help="base URL ending in /v1; repeatable, one per engine; default: $URL")
    add("--model", required=True)
    add(
        "--reader",
        choices=get_args(ReaderKind),
        default="loop",
        help="the loop or one prompt here, or the gateways at the URLs",
    )
    add("--thinking", choices=("on", "off"), help="direct: else the profile's")
    add("--reply-tokens", type=positive, help="of the answer, thinking included; else the profile's")
    add(
        "--window",
        type=positive,
        help="tokens of a call: a longer document loses its middle (direct), a larger profile is fitted (loop)",
    )
    add("--strategy", choices=get_args(Strategy), default="memagent")
    add("--options", default="{}", help='as in the API: {"parallel": {"segments": 8}}, {"parity": true}')
    add("--max-rereads", type=int, default=2)
    add("--chunk-tokens", type=positive, help="as in the API; else the profile's")
    add("--memory-tokens", type=positive, help="as in the API; else the profile's")
    add(
        "--profile", help="the prompts: a built-in profile, or a folder; default: default, but not for published models"
    )
    add("--question-suffix", type=_suffix, action="append", default=[], metavar="TASK=TEXT", help=_SUFFIX_HELP)
    add("--tokenizer", type=Path, help="the model's tokenizer.json; default: estimate the tokens of a chunk")
    add("--api-key-variable", help="environment variable that holds the endpoints' key")
    add("--dialect", choices=DIALECT_NAMES, default="auto", help="the kind of endpoint")
    add("--seed", type=int, action="append", help="seed for the engine; repeat the option to read each item again")
    add("--unseeded", action="store_true", help="send no seed: --seed only numbers the readings, as published")
    add("--limit", type=positive, help="maximum number of items per task and size")
    add("--at-once", type=positive, default=8, help="concurrent items per engine")
    add("--attempts", type=positive, default=3, help="attempts per engine before an item fails")
    add("--timeout-s", type=float, default=900.0, help="of one call")
    add("--ray", nargs="?", const="auto", help="spread over a Ray cluster: its address, auto, or local")
    add("--out", type=Path, default=Path(".memloop/ruler"), help="folder of results, table and figure")


def _add_synthesise(synthesise_: argparse.ArgumentParser) -> None:
    synthesise_.set_defaults(act=_synthesise)
    add = synthesise_.add_argument
    add("--hotpot", type=Path, required=True, help="a HotpotQA file, JSON or JSONL")
    add(
        "--documents",
        type=positive,
        action="append",
        required=True,
        help="documents per item; repeatable, one per size",
    )
    add("--items", type=positive, default=128, help="of each size")
    add("--seed", type=int, default=0)
    add("--out", type=Path, required=True, help="folder for eval_hqa_N.jsonl")


def _add_tiny(tiny: argparse.ArgumentParser) -> None:
    tiny.set_defaults(act=_tiny)
    add = tiny.add_argument
    add("--tokens", type=positive, action="append", required=True, help="of a document; repeatable, one per size")
    add("--items", type=positive, default=32, help="of each size")
    add("--seed", type=int, default=0)
    add("--out", type=Path, required=True, help=f"folder for {TASK}_N.jsonl")


def _suffix(text: str) -> tuple[str, str]:
    task, _, suffix = text.partition("=")
    if task not in (HQA, *DEFAULT_SUFFIXES, *OOD_TASKS):
        raise argparse.ArgumentTypeError(f"{task} is no task: TASK=TEXT, with 2wiki or global_reasoning as TASK")
    return task, suffix
