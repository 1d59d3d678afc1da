"""``python -m trainer gate``: measure a candidate beside the incumbent, and print its registry entry if it passes.

Exits with 0 and the entry on stdout if it passes; with 1 and every reason on stderr if not; with 2 if nothing was
decided.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from memloop.profiles import ProfileError
from memloop.wire.errors import MemloopError
from trainer.data.json_rows import DataError
from trainer.data.progress import Progress
from trainer.data.retry_policy import RetryPolicy
from trainer.data.rows import AgentName
from trainer.gate.card import CardFacts, check_may_write, table
from trainer.gate.comparison import rows_needed
from trainer.gate.conformance import check_engine
from trainer.gate.gateway import base_url
from trainer.gate.held_out import HeldOut, open_held_out
from trainer.gate.registry_entry import row_like
from trainer.gate.report import reports_in
from trainer.gate.run import EngineCheck, Outcome, Place, Plan, Rule, gate
from trainer.gate.scores import READING, WRITING, scores_for
from trainer.rollout.export_record import ExportError, read_record

_REGISTRY = Path("services/inference/inference/models.toml")
_MARGIN = 0.05


def main(arguments: Sequence[str] | None = None, *, engine_check: EngineCheck = check_engine) -> None:
    """Measure and decide as the arguments request."""
    options = _parser().parse_args(arguments)
    try:
        outcome = asyncio.run(gate(plan_of(options), Progress(), engine_check=engine_check))
    except (DataError, ExportError, ProfileError, OSError) as error:
        _end(str(error))
    except MemloopError as error:
        _end(f"{error}\nNothing is lost: run the same command again to resume.")
    else:
        _print_outcome(outcome)


def plan_of(options: argparse.Namespace) -> Plan:
    """Build the plan of the options. Raises DataError or ExportError when they are invalid."""
    record = read_record(options.candidate)
    name, source = options.name or options.candidate.resolve().name, options.source or str(options.candidate.resolve())
    row = row_like(options.registry, options.like or options.incumbent, name=name, source=source)
    check_may_write(options.candidate)
    reports_in(options.candidate, record.weights_sha256)
    held_out = open_held_out(options.held_out, options.loop)
    options.out.mkdir(parents=True, exist_ok=True)
    candidate_at, incumbent_at = _places(options)
    launchers = _launchers(options)
    return Plan(
        candidate=options.candidate,
        record=record,
        profile=options.profile or record.profile.partition("@")[0],
        candidate_at=candidate_at,
        launcher=launchers[0],
        incumbent=options.incumbent,
        incumbent_at=incumbent_at,
        incumbent_launcher=launchers[1],
        held_out=held_out,
        out=options.out,
        rule=_rule(options, held_out),
        row=row,
        source=source,
        facts=CardFacts(name, options.license, options.base_model, options.data_card, options.limit),
        places=options.at_once,
        retries=RetryPolicy(options.attempts),
        wait_s=options.timeout_s,
    )


def _places(options: argparse.Namespace) -> tuple[Place, Place]:
    """Return the candidate's and the incumbent's gateway."""
    theirs = options.incumbent_api_key_variable or options.api_key_variable
    return (
        Place(base_url(options.gateway), os.environ.get(options.api_key_variable)),
        Place(base_url(options.incumbent_gateway or options.gateway), os.environ.get(theirs)),
    )


def _launchers(options: argparse.Namespace) -> tuple[str, str | None]:
    """Return the candidate's and the incumbent's launcher; one gateway implies one launcher, unless named."""
    same = options.incumbent_gateway in {None, options.gateway}
    theirs = options.incumbent_inference or (options.inference if same else None)
    return base_url(options.inference), theirs and base_url(theirs)


def _rule(options: argparse.Namespace, held_out: HeldOut) -> Rule:
    names = scores_for(held_out.loop)
    score = options.score or names[0]
    if score not in names:
        raise DataError(f"{held_out.loop} has no score {score}, only {', '.join(names)}")
    rule = Rule(score, 0.0 if options.require_gain else options.margin)
    needed = 0 if options.require_gain else rows_needed(rule.margin)
    if held_out.count < needed:
        raise DataError(
            f"{held_out.path} has {held_out.count} rows, and even equal models need {needed} for a margin of "
            f"{rule.margin:g}: hold out more, or allow a larger --margin"
        )
    return rule


def _print_outcome(outcome: Outcome) -> None:
    if outcome.comparisons:
        print(table(outcome.comparisons), file=sys.stderr)
    for reason in outcome.against:
        print(f"refused: {reason}", file=sys.stderr)
    if outcome.entry is None:
        sys.exit(1)
    print(outcome.entry, end="")


def _end(reason: str) -> None:
    print(reason, file=sys.stderr)
    sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer gate", description=__doc__)
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the gate's own arguments, for every command that begins with a gate."""
    add = parser.add_argument
    add("--candidate", type=Path, required=True, help="the folder of an export")
    add("--gateway", required=True, metavar="URL", help="a running gateway that serves it")
    add("--inference", required=True, metavar="URL", help="the launcher behind that gateway")
    add("--incumbent", required=True, metavar="MODEL", help="the serving model, by its name in the gateway")
    add("--incumbent-gateway", metavar="URL", help="default: the candidate's")
    add("--incumbent-inference", metavar="URL", help="default: the candidate's, behind the same gateway")
    add("--held-out", type=Path, required=True, metavar="FILE", help="Parquet in the columns of training data")
    add("--loop", choices=get_args(AgentName), help="default: the only loop in the rows")
    add("--out", type=Path, required=True, help="folder of answers, report and conformance table")
    add("--score", choices=(*READING, *WRITING), help="the deciding score; default: strict, or exact for memreader")
    add("--margin", type=_margin, default=_MARGIN, help="largest tolerated loss, 0 to 1 (default %(default)s)")
    add("--require-gain", action="store_true", help="require a gain outside the confidence interval")
    add("--name", help="of the registry entry and on the card; default: the folder's")
    add("--like", metavar="MODEL", help="the registry's row that is changed; default: the incumbent's")
    add("--registry", type=Path, default=_REGISTRY, help="inference's models.toml (default %(default)s)")
    add("--source", help="where inference will find the files: a folder or a hub id; default: the candidate's folder")
    add("--profile", help="name or folder of the profile that it was trained with; default: by its name")
    add("--license", default="other", help="for the card (default %(default)s)")
    add("--base-model", help="hub id of what training started from, for the card")
    add("--data-card", action="append", default=[], help="hub id of its training data, for the card; repeatable")
    add("--limit", action="append", default=[], help="a limit to state on the card; repeatable")
    add("--at-once", type=int, default=8, help="rows (default %(default)s)")
    add("--attempts", type=int, default=4, help="of a call, until a gateway that fails stops the run")
    add("--timeout-s", type=float, default=3600.0, help="for one row (default %(default)s)")
    add("--api-key-variable", default="MEMLOOP_API_KEY", help="that holds the gateway's key (default %(default)s)")
    add("--incumbent-api-key-variable", help="default: the same")


def _margin(text: str) -> float:
    margin = float(text)
    if not 0 < margin < 1:
        raise argparse.ArgumentTypeError("between 0 and 1; to require a gain, use --require-gain")
    return margin


if __name__ == "__main__":
    main()
