"""Draws the headline figure: exact match by document length, a line per strategy, bars for the intervals."""

# pyright: reportUnknownMemberType=false
# matplotlib's own types are partly unknown.

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "memloop"


def save_plot(rows: Sequence[dict[str, object]], path: Path) -> None:
    """Write the figure as SVG."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    sizes = sorted({_number(row["document_tokens"]) for row in rows})
    for way in dict.fromkeys(str(row["way"]) for row in rows):
        own = sorted((row for row in rows if row["way"] == way), key=lambda row: _number(row["document_tokens"]))
        height = [100 * _number(row["exact_match"]) for row in own]
        below = [y - 100 * _number(row["low"]) for y, row in zip(height, own, strict=True)]
        above = [100 * _number(row["high"]) - y for y, row in zip(height, own, strict=True)]
        places = [sizes.index(_number(row["document_tokens"])) for row in own]
        axes.errorbar(places, height, yerr=[below, above], marker="o", capsize=3, label=way)
    axes.set_xticks(range(len(sizes)), [_label(size) for size in sizes])
    axes.set_ylim(0, 105)
    axes.set_xlabel("document length in tokens")
    axes.set_ylabel("exact match, %")
    axes.set_title("memloop-tiny, a window of 1,024 tokens")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower left")
    figure.savefig(path, metadata={"Date": None})


def _number(value: object) -> float:
    return float(str(value))


def _label(tokens: float) -> str:
    return f"{tokens / 1_000_000:g}M" if tokens >= 1_000_000 else f"{tokens / 1000:g}K"
