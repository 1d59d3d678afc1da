"""Renders the result as a Markdown table, a figure, and the run's last line."""

# pyright: reportUnknownMemberType=false
# matplotlib's own types are partly unknown.

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import matplotlib as mpl
import orjson
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.ruler.items import HQA
from evaluation.ruler.scores import Estimate, Row

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "memloop"
_SCORES = ("published", "published_plain", "strict", "em", "f1", "sub_em", "references")
_COLUMNS = ("task", "size", "items", "reads", "failed", *_SCORES, "calls", "tokens", "seconds")


def table(rows: Sequence[Row]) -> str:
    """Format scores in percent with 95 % intervals; a dash for a score that does not apply or is unknown."""
    lines = [_line(_COLUMNS), _line("---" for _ in _COLUMNS)]
    return "\n".join([*lines, *(_line(_cells(row)) for row in rows)]) + "\n"


def best_table(rows: Sequence[Row]) -> str:
    """Format the best seed's scores in percent; a maximum over seeds has no interval and flatters."""
    names = ("task", "size", *_SCORES)
    cells = (
        (row.task, f"{row.size}", *(f"{100 * row.best[name]:.1f}" if name in row.best else "–" for name in _SCORES))
        for row in rows
    )
    return "\n".join([_line(names), _line("---" for _ in names), *map(_line, cells)]) + "\n"


def last_line(rows: Sequence[Row], run: dict[str, object], *, kinds: Sequence[Row] = ()) -> str:
    """Format the last line: one JSON object."""
    found = {
        "benchmark": "ruler",
        **run,
        "items": sum(row.items for row in rows),
        "failed": sum(row.failed for row in rows),
        "rows": [asdict(row) for row in rows],
        "kinds": [asdict(row) for row in kinds],
    }
    return orjson.dumps(found).decode()


def save_plot(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Plot containment against size as SVG, with a panel each for documents and tokens."""
    panels = [
        (unit, own)
        for unit, own in (
            ("documents", [row for row in rows if row.task == HQA]),
            ("tokens", [row for row in rows if row.task != HQA]),
        )
        if own
    ]
    figure = Figure(figsize=(7 * len(panels), 4.5), layout="constrained")
    for (unit, own), axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        _draw(axes, own, unit)
    figure.suptitle(title)
    figure.savefig(path, metadata={"Date": None})


def _draw(axes: Axes, rows: Sequence[Row], unit: str) -> None:
    sizes = sorted({row.size for row in rows})
    for task in dict.fromkeys(row.task for row in rows):
        own = [row for row in rows if row.task == task]
        scores = [row.scores[row.headline] for row in own]
        height = [100 * score.mean for score in scores]
        below = [100 * (score.mean - score.low) for score in scores]
        above = [100 * (score.high - score.mean) for score in scores]
        places = [sizes.index(row.size) for row in own]
        axes.errorbar(places, height, yerr=[below, above], marker="o", capsize=3, label=task)
    axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    axes.set_ylim(0, 105)
    axes.set_xlabel(unit)
    axes.set_ylabel("answers that contain the truth, %")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower left")


def _cells(row: Row) -> Sequence[str]:
    task = f"{row.task}: {row.kind}" if row.kind else row.task
    counts = (task, f"{row.size}", f"{row.items}", f"{row.reads}", f"{row.failed}")
    costs = (f"{row.calls:.1f}", f"{row.tokens:.0f}", f"{row.seconds:.2f}")
    return (*counts, *(_percent(row.scores.get(name)) for name in _SCORES), *costs)


def _percent(score: Estimate | None) -> str:
    return f"{100 * score.mean:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]" if score else "–"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
