"""``memloop-evaluate updates``: changed facts replaced, other facts kept. The last line is one JSON object."""

import argparse
import os
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from evaluation.memory.stack import own_store
from evaluation.updates import facts, tiny_facts
from evaluation.updates.cases import Case, cases
from evaluation.updates.oracle import Oracle
from evaluation.updates.run import Outcome, run
from memloop.ports import ChatModel
from memloop.profiles import load_profile
from memloop_clients.engine import EngineClient

_SEED = 7
_REPLACED_GOAL = 90.0
_MERGED_GOAL = 2.0


def main(arguments: Sequence[str]) -> None:
    """Run the cases of one half; print the table and the last line."""
    options = _parser().parse_args(arguments)
    made_up = tiny_facts if options.facts == "tiny" else facts
    half = made_up.DEVELOPMENT if options.development else made_up.HELD_OUT
    chosen = cases(half, seed=_SEED, people=made_up.PEOPLE)
    outcomes = uvloop.run(_run(chosen, options))
    writer = options.model or "oracle (scripted)"
    show(outcomes, Console(width=100), writer=writer)
    found = figures(outcomes)
    goals = {
        "replaced_percent": "met" if found["replaced_percent"] >= _REPLACED_GOAL else "missed",
        "wrongly_merged_percent": "met" if found["wrongly_merged_percent"] <= _MERGED_GOAL else "missed",
    }
    print(
        orjson.dumps(
            {"evaluation": "updates", "facts": options.facts, "writer": writer, **found, "goals": goals}
        ).decode()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate updates", description=__doc__)
    parser.add_argument("--engine-url", help="base URL of the writer's endpoint; without it a scripted writer answers")
    parser.add_argument("--model", help="the writer's model ID, with --engine-url")
    parser.add_argument("--profile", default="default", help="prompt profile of the writer (default: %(default)s)")
    parser.add_argument(
        "--facts", choices=("english", "tiny"), default="english", help="tiny: of the tiny writer's world"
    )
    parser.add_argument("--development", action="store_true", help="the half that prompt and limits were chosen on")
    return parser


async def _run(chosen: Sequence[Case], options: argparse.Namespace) -> list[Outcome]:
    profile = load_profile(options.profile)
    with tempfile.TemporaryDirectory(prefix="memloop-updates-") as folder:
        async with own_store(Path(folder)) as store, _models(options.engine_url, options.model) as model:
            return await run(chosen, store=store, model_of=lambda case: model or Oracle(case), profile=profile)


@asynccontextmanager
async def _models(url: str | None, model: str | None) -> AsyncGenerator[ChatModel | None]:
    if url is None or model is None:
        yield None
        return
    async with EngineClient(url, model=model, api_key=os.environ.get("MEMLOOP_ENGINE_API_KEY")) as client:
        yield client


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Percentages: changed facts replaced, the same fact confirmed, cases with another fact replaced or lost."""
    return {
        "cases": len(outcomes),
        "replaced_percent": _percent([one.replaced for one in outcomes if one.case.kind == "changed"]),
        "same_kept_percent": _percent([one.right for one in outcomes if one.case.kind == "same"]),
        "wrongly_merged_percent": _percent([_merged(one) for one in outcomes]),
        "calls_per_case": round(sum(one.calls for one in outcomes) / len(outcomes), 2),
    }


def _merged(outcome: Outcome) -> bool:
    return outcome.lost > 0 or (outcome.replaced and outcome.case.kind != "changed")


def _percent(flags: Sequence[bool]) -> float:
    return round(100 * sum(flags) / len(flags), 1) if flags else 0.0


def show(outcomes: Sequence[Outcome], console: Console, *, writer: str) -> None:
    """Print a row for each kind of case."""
    table = Table("case", "number", "right", "target replaced", "another fact lost", title=f"updates, writer: {writer}")
    for kind in ("changed", "same", "new"):
        of_kind = [one for one in outcomes if one.case.kind == kind]
        right = _percent([one.right for one in of_kind])
        replaced, lost = sum(one.replaced for one in of_kind), sum(one.lost > 0 for one in of_kind)
        table.add_row(kind, str(len(of_kind)), f"{right} %", str(replaced), str(lost))
    console.print(table)
