"""Makes one model's reading table under a publication's conditions, by the evaluation of long reads."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from evaluation.published.conditions import (
    DIRECT,
    DIRECT_WINDOW_TOKENS,
    READING,
    Conditions,
    Reading,
    question_suffixes,
)
from evaluation.published.figures import PublishedTable
from evaluation.published.report import Cell, Outcome, amounts, beside
from evaluation.published.serving import Served
from evaluation.ruler.items import DEFAULT_SUFFIXES
from evaluation.ruler.readers import Setup
from evaluation.ruler.run import Evaluation, evaluate, to_stderr
from inference.profile_import.importing import import_prompts
from memloop.profiles import profile_files, profile_from_files, whole_profile
from memloop.wire.reading import ReadingOptions

_PARITY: Final = ReadingOptions(parity=True)


@dataclass(frozen=True, slots=True)
class Prompts:
    """A profile's files, the words after questions, and where both come from, if not from the publication."""

    files: dict[str, str]
    suffixes: Mapping[str, str]
    other: str | None = None


def conditions_of(system: Reading, reader: str) -> Conditions:
    """Return the conditions of a publication's table, or of its baselines."""
    return DIRECT if reader == "direct" else READING[system]


def prompts_of(system: Reading, conditions: Conditions, checkout: Path | None, profile: str | None) -> Prompts:
    """Return a checkout's prompts, or a profile's. Raises ImportRefused and ProfileError."""
    if checkout is None:
        return Prompts(profile_files(profile or "default"), DEFAULT_SUFFIXES, f"those of the profile {profile}")
    suffixes = question_suffixes(checkout) if system == "memreread" else DEFAULT_SUFFIXES
    return Prompts(whole_profile(import_prompts(conditions.prompts, checkout).files()), suffixes)


def setup_of(conditions: Conditions, prompts: Prompts, **endpoint: Any) -> Setup:
    """Return how to read: ``endpoint`` are ``Setup``'s model, tokenizer, key and time limit."""
    is_direct = conditions is DIRECT
    return Setup(
        kind="direct" if is_direct else "loop",
        profile_files=prompts.files,
        strategy=conditions.strategy,
        options=ReadingOptions() if is_direct else _PARITY,
        max_rereads=conditions.max_rereads,
        reply_tokens=conditions.answer_tokens,
        window_tokens=DIRECT_WINDOW_TOKENS if is_direct else None,
        sends_seed=False,  # as no published code does
        **endpoint,
    )


def at_served(evaluation: Evaluation, served: Served) -> Evaluation:
    """Return the evaluation at a model that the launcher serves."""
    window = min(evaluation.setup.window_tokens or served.window_tokens, served.window_tokens)
    setup = replace(evaluation.setup, model=served.model, tokenizer_json=served.tokenizer_json, window_tokens=window)
    return replace(evaluation, setup=setup, urls=(served.url,))


def outcome_of(evaluation: Evaluation, conditions: Conditions, table: PublishedTable, prompts: Prompts) -> Outcome:
    """Read the items, and return our figures with the published rows beside them. Raises DataError."""
    began = time.monotonic()
    rows: list[dict[str, Any]] = orjson.loads(evaluate(evaluation, report=to_stderr))["rows"]
    setup = evaluation.setup
    published, other_model = beside(table, setup.model, setup.kind)
    cells = tuple(_cell(row, conditions.score, runs=len(evaluation.seeds)) for row in rows)
    return Outcome(
        model=setup.model,
        reader=setup.kind,
        cells=cells,
        beside=published,
        minutes=(time.monotonic() - began) / 60,
        calls=round(sum(row["calls"] * (row["reads"] - row["failed"]) for row in rows)),
        differences={
            **conditions.differences,
            **other_model,
            **_circumstances(evaluation, conditions, prompts),
            **amounts(cells, table),
        },
    )


def _cell(row: Mapping[str, Any], score: str, *, runs: int) -> Cell:
    found = row["scores"][score]
    return Cell(
        task=row["task"],
        name=str(row["size"]),
        mean=100 * found["mean"],
        low=100 * found["low"],
        high=100 * found["high"],
        best=100 * row["best"][score] if runs > 1 else None,
        items=row["items"],
        failed=row["failed"],
    )


def _circumstances(evaluation: Evaluation, conditions: Conditions, prompts: Prompts) -> Mapping[str, str]:
    """Return what this command line does otherwise than the publication."""
    setup, found = evaluation.setup, dict[str, str]()
    if prompts.other is not None:
        found["prompts"] = prompts.other
    if setup.tokenizer_json is None:
        found["chunks"] = "cut by an estimate of tokens, for want of --tokenizer, and smaller than published ones"
    of_prompts = profile_from_files(setup.profile_files).budget.window_tokens
    wanted = DIRECT_WINDOW_TOKENS if setup.kind == "direct" else of_prompts
    if setup.window_tokens is not None and setup.window_tokens < wanted:
        found["window"] = f"{setup.window_tokens:,} tokens of the served model, published: {wanted:,}"
    if evaluation.seeds != conditions.seeds:
        found["runs"] = f"{len(evaluation.seeds)}, published: {len(conditions.seeds)}"
    return found
