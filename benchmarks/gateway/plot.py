"""Draws a run: requests per second, and CPU per request, by concurrency, ours beside LiteLLM's."""

# matplotlib's own types are partly unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.gateway.results import DIRECT, LITELLM, OFF, ON, PLAIN, Row

_NAMES = {
    DIRECT: "engine, direct",
    PLAIN: "plain proxy",
    OFF: "gateway, memory off",
    ON: "gateway, memory on",
    LITELLM: "LiteLLM",
}
_CPU = {PLAIN: "plain", OFF: "gateway", ON: "gateway", LITELLM: "litellm"}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot as an SVG, in a folder that is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["svg.hashsalt"] = "memloop"
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    for target, name in _NAMES.items():
        json = [row for row in rows if row.target == target and row.kind == "json"]
        streams = [row for row in rows if row.target == target and row.kind == "stream"]
        if not json:
            continue
        axes[0].plot([row.concurrency for row in json], [row.per_second for row in json], marker="o", label=name)
        for axis, found in ((axes[1], json), (axes[2], streams)) if target in _CPU else ():
            costs = [row.cpu_ms[_CPU[target]] for row in found]
            axis.plot([row.concurrency for row in found], costs, marker="o", label=name)
    titles = ("JSON: requests per second", "JSON: CPU ms per request", "stream: CPU ms per request")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xscale="log", yscale="log", xlabel="concurrency", xticks=[1, 4, 16, 64])
        axis.set_xticklabels(["1", "4", "16", "64"])
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
