"""Makes MemReader's memory tables by MemOS's protocol, with the writer behind a gateway of its own."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import orjson

from evaluation.memory import command as memory
from evaluation.memory.memos import DIFFERENCES, Count, cl100k
from evaluation.memory.options import parsed
from evaluation.published.figures import PublishedTable
from evaluation.published.report import Cell, Outcome, amounts, beside
from inference.profile_import.importing import import_prompts, write_profile
from trainer.data.dialogues.formats import Format
from trainer.data.json_rows import DataError

FORMATS: Final[tuple[Format, ...]] = get_args(Format)
_POINTS: Final = {
    "extraction recall": "recall",
    "weighted recall": "weighted_recall",
    "extraction F1": "f1",
    "updates correct": "update_correct",
    "updates wrong": "update_wrong",
    "updates omitted": "update_omission",
}
_WRITING: Final = {
    "writes": "turns per call, times and search results are the gateway's; no public code shows the published ones",
    "models": "the published answers and judgements are gpt-4o-mini's",
}


@dataclass(frozen=True, slots=True)
class Model:
    """An endpoint and a model of it."""

    url: str
    name: str
    key_variable: str | None = None

    def options(self, url: str, name: str, key: str) -> list[str]:
        """Return the command line of the memory evaluation that names it, by the names of its options."""
        return [url, self.url, name, self.name, *([key, self.key_variable] if self.key_variable else [])]


@dataclass(frozen=True, slots=True)
class Tables:
    """The data by format, and what answers, judges and reads them. ``more``: other options of the evaluation."""

    data: Mapping[Format, Path]
    answers: Model
    judge: Model
    profile: str
    checkout: Path | None
    more: Sequence[str] = ()


def profile_of(snapshot: Path, folder: Path) -> str:
    """Return the folder of a profile with the card's prompts, made where it is missing. Raises ImportRefused."""
    imported = import_prompts("memreader-card", snapshot)
    profile = folder / f"prompts-{imported.version}"
    if not profile.exists():
        write_profile(imported, profile)
    return str(profile)


def data_of(given: Sequence[str]) -> Mapping[Format, Path]:
    """Parse ``FORMAT=FILE``. Raises DataError."""
    found: dict[Format, Path] = {}
    for each in given:
        name, _, path = each.partition("=")
        format_: Format | None = next((known for known in FORMATS if known == name), None)
        if format_ is None or not path or format_ in found:
            raise DataError(f"{each}: give each of {', '.join(FORMATS)} at most once, as locomo=FILE")
        found[format_] = Path(path)
    return found


def outcome_of(
    writer: Model, tables: Tables, out: Path, table: PublishedTable, *, count: Callable[[], Count] = cl100k
) -> Outcome:
    """Write, ask and judge each file, and return our figures with the published rows beside them."""
    began, calls = time.monotonic(), 0
    cells: list[Cell] = []
    for format_, path in tables.data.items():
        checkout = ["--memos-checkout", str(tables.checkout)] if tables.checkout else []
        arguments = [
            *("--format", format_, "--data", str(path), "--out", str(out / format_), "--protocol", "memos"),
            *tables.answers.options("--engine-url", "--model", "--api-key-variable"),
            *tables.judge.options("--judge-url", "--judge-model", "--judge-api-key-variable"),
            *writer.options("--writer-url", "--writer", "--writer-key-variable"),
            *("--profile", tables.profile, *checkout, *tables.more),
        ]
        printed = memory.evaluate(parsed(arguments), count=count)
        found = orjson.loads(printed.splitlines()[-1])
        cells += _cells(format_, found)
        calls += found["rows"]["ours"]["calls"] + (found["points"]["judgements"] if found["points"] else 0)
    published, other_model = beside(table, writer.name, "loop")
    differences = {**_WRITING, **DIFFERENCES}
    if all("gpt-4o-mini" in name for name in (tables.answers.name, tables.judge.name)):
        del differences["models"]
    return Outcome(
        model=writer.name,
        reader="writer",
        cells=tuple(cells),
        beside=published,
        minutes=(time.monotonic() - began) / 60,
        calls=calls,
        differences={**differences, **other_model, **amounts(cells, table)},
    )


def _cells(task: Format, found: Mapping[str, Any]) -> list[Cell]:
    if task == "halumem":
        points = found["points"]
        counts = {"updates": points["updates"], "extraction": points["points"]} if points else {}
        return [
            Cell(task, name, 100 * points[key], items=counts["updates" if key.startswith("update") else "extraction"])
            for name, key in _POINTS.items()
            if points
        ]
    ours = found["rows"]["ours"]
    shares = {**ours["by_category"], "overall": ours["accuracy"]}
    cells = [
        Cell(
            task,
            name,
            100 * share["share"],
            100 * share["low"],
            100 * share["high"],
            items=share["count"],
            failed=ours["failed"] if name == "overall" else 0,
        )
        for name, share in shares.items()
    ]
    count = ours["accuracy"]["count"]
    if task == "locomo":
        cells.append(Cell(task, "F1", 100 * ours["set_f1"], items=count))
    return [*cells, Cell(task, "context tokens", ours["context_tokens"], items=count)]
