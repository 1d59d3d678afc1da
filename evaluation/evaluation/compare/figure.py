"""Draws differences with their intervals as SVG, the same bytes for the same figures."""

# pyright: reportUnknownMemberType=false
# matplotlib's own types are partly unknown.

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from memloop.scoring.comparison import Comparison

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "memloop"
_INCHES_PER_LINE = 0.28


def save_figure(rows: Sequence[tuple[str, Comparison]], path: Path) -> None:
    """Draw one line for each named comparison, the first on top."""
    figure = Figure(figsize=(8, 1.2 + _INCHES_PER_LINE * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = list(range(len(rows), 0, -1))
    gains = [100 * found.gain for _, found in rows]
    below = [100 * max(0.0, found.gain - found.gain_interval[0]) for _, found in rows]
    above = [100 * max(0.0, found.gain_interval[1] - found.gain) for _, found in rows]
    axes.errorbar(gains, places, xerr=[below, above], fmt="o", capsize=3)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_yticks(places, [name for name, _ in rows])
    axes.set_xlabel("B − A, percentage points, 95 % intervals")
    figure.savefig(path, metadata={"Date": None})
