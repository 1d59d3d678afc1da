"""Keeps the findings of runs with date and machine: each run's curve, and scores by length before and after."""

from pathlib import Path
from typing import TypedDict

import orjson

from benchmarks.kept import FOLDER, write_dated


def kept_file(plan: str) -> Path:
    """Return the file of a plan's kept run."""
    return FOLDER / f"training-{plan}.json"


class Row(TypedDict):
    """A policy's scores on documents of ``times`` the training length, in percent; intervals of the strict ones.

    ``faults`` counts the documents that were answered wrong by what went wrong first.
    """

    policy: str
    seed: int
    times: int
    document_tokens: int
    documents: int
    strict: float
    low: float
    high: float
    lenient: float
    faults: dict[str, int]


class Curve(TypedDict):
    """A run's steps, and its percentages of right answers to held-out questions and in rollouts."""

    seed: int
    held_out: list[tuple[int, float]]
    sampled: list[tuple[int, float]]


class Found(TypedDict):
    """One run of the benchmark. ``headline`` is its last line."""

    plan: str
    steps: int
    curves: list[Curve]
    rows: list[Row]
    headline: dict[str, object]


def keep(found: Found) -> None:
    """Write the plan's file."""
    write_dated(kept_file(found["plan"]), found)


def kept_headline(plan: str) -> dict[str, object]:
    """Return the figures of the plan's kept run with its date and machine; empty if there is none."""
    path = kept_file(plan)
    if not path.exists():
        return {}
    run = orjson.loads(path.read_bytes())
    source = {"file": f"benchmarks/results/{path.name}", "date": run["date"], "machine": run["machine"]}
    return {**source, "steps": run["steps"], **run["headline"]}
