"""Renders a publication's figures beside ours, with intervals, and every named difference."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from evaluation.published.figures import PublishedRow, PublishedTable
from memloop.scoring.comparison import wilson


@dataclass(frozen=True, slots=True)
class Cell:
    """One of our figures, in percent unless ``unit`` says tokens. ``best``: of several runs, if there were any.

    ``low`` and ``high`` bound its 95 % interval, where it has one; ``items`` are the questions behind it.
    """

    task: str
    name: str
    mean: float
    low: float | None = None
    high: float | None = None
    best: float | None = None
    items: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one model did: its cells, the published rows beside them, minutes, calls, and what differs by name."""

    model: str
    reader: str
    cells: tuple[Cell, ...]
    beside: tuple[PublishedRow, ...]
    minutes: float
    calls: int
    differences: Mapping[str, str] = field(default_factory=dict[str, str])


def markdown(system: str, table: PublishedTable, outcomes: Sequence[Outcome]) -> str:
    """Render one table for each model. The published figures' intervals are Wilson's over their items."""
    parts = [f"# {system}: published and ours", f"Published: {table.source}."]
    for outcome in outcomes:
        parts += [
            f"## {outcome.model}, {outcome.reader}",
            _beside(table, outcome),
            f"{outcome.minutes:.1f} minutes, {outcome.calls:,} calls.",
            "Differences:\n\n" + "\n".join(f"* {name}: {told}." for name, told in outcome.differences.items()),
        ]
    return "\n\n".join(parts) + "\n"


def last_line(system: str, table: PublishedTable, outcomes: Sequence[Outcome]) -> str:
    """Format the last line: one JSON object."""
    found = {
        "benchmark": f"published {system}",
        "source": table.source,
        "models": [{**asdict(outcome), "beside": [row.model_dump() for row in outcome.beside]} for outcome in outcomes],
    }
    return orjson.dumps(found).decode()


def beside(table: PublishedTable, model: str, reader: str) -> tuple[tuple[PublishedRow, ...], Mapping[str, str]]:
    """Return the published rows that stand beside a model, and the difference if they are of another one."""
    if own := table.rows_of(model, reader):
        return own, {}
    rows = table.headline(reader)
    told = "its first rows stand beside" if rows else "it has no rows"
    return rows, {"model": f"{model} is not in the published table; {told}"}


def amounts(cells: Iterable[Cell], table: PublishedTable) -> Mapping[str, str]:
    """Return the differences in amount: cells of another number of questions than published, and failures."""
    found, held = dict[str, str](), list(cells)
    others = [
        f"{cell.task} {cell.name}: {cell.items} of {wanted}"
        for cell in held
        if (wanted := table.items_of(cell.task, cell.name)) is not None and cell.items != wanted
    ]
    if others:
        found["items"] = ", ".join(others)
    if failed := sum(cell.failed for cell in held):
        found["failures"] = f"{failed} failed in this run"
    return found


def write(folder: Path, system: str, table: PublishedTable, outcomes: Sequence[Outcome]) -> str:
    """Write ``published.md`` and return it with the last line."""
    text = markdown(system, table, outcomes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "published.md").write_text(text, "utf-8")
    return f"{text}\n{last_line(system, table, outcomes)}"


def _beside(table: PublishedTable, outcome: Outcome) -> str:
    has_best = any(cell.best is not None for cell in outcome.cells)
    head = ("task", "cell", *(row.name for row in outcome.beside), f"ours: {outcome.model}")
    head += (*(["ours, best run"] if has_best else []), "items", "failed")
    lines = [_cells(table, cell, outcome.beside, has_best=has_best) for cell in outcome.cells]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def _cells(table: PublishedTable, cell: Cell, beside: Iterable[PublishedRow], *, has_best: bool) -> Sequence[str]:
    label = table.labels.get(cell.name)
    name = f"{cell.name} ({label})" if label else cell.name
    theirs = [_published(table, row, cell) for row in beside]
    own = f"{cell.mean:.2f}" + ("" if cell.low is None or cell.high is None else f" [{cell.low:.1f}, {cell.high:.1f}]")
    best = ["–" if cell.best is None else f"{cell.best:.2f}"] if has_best else []
    return (cell.task, name, *theirs, own, *best, f"{cell.items}", f"{cell.failed}")


def _published(table: PublishedTable, row: PublishedRow, cell: Cell) -> str:
    figure = row.figures.get(cell.task, {}).get(cell.name)
    if figure is None:
        return "–"
    items = table.items_of(cell.task, cell.name)
    if items is None or row.best:  # a maximum has no interval of a mean
        return f"{figure:.2f}"
    low, high = wilson(figure / 100, items)
    return f"{figure:.2f} [{100 * low:.1f}, {100 * high:.1f}]"
