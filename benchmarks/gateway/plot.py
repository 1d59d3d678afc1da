"""Draws a run: requests per second, and CPU per request, by concurrency, ours beside LiteLLM's."""

# matplotlib's own types are partly unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.gateway.results import DIRECT, LITELLM, OFF, ON, PLAIN, Row
from benchmarks.gateway.workload import Kind

_NAMES = {
    DIRECT: "engine, direct",
    PLAIN: "plain proxy",
    OFF: "gateway, memory off",
    ON: "gateway, memory on",
    LITELLM: "LiteLLM",
}
_COSTS: dict[Kind, str] = {"json": "JSON", "stream": "stream", "stream_paced": "paced stream"}
_CPU = {PLAIN: "plain", OFF: "gateway", ON: "gateway", LITELLM: "litellm"}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot as an SVG; creates its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["svg.hashsalt"] = "memloop"
    figure = Figure(figsize=(14, 3.4), layout="constrained")
    axes = figure.subplots(1, 1 + len(_COSTS))
    for target, name in _NAMES.items():
        found = {kind: [row for row in rows if row.target == target and row.kind == kind] for kind in _COSTS}
        if not (json := found["json"]):
            continue
        axes[0].plot([row.concurrency for row in json], [row.per_second for row in json], marker="o", label=name)
        for axis, kind in zip(axes[1:], _COSTS, strict=True) if target in _CPU else ():
            costs = [row.cpu_ms[_CPU[target]] for row in found[kind]]
            axis.plot([row.concurrency for row in found[kind]], costs, marker="o", label=name)
    titles = ("JSON: requests per second", *(f"{name}: CPU ms per request" for name in _COSTS.values()))
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xscale="log", yscale="log", xlabel="concurrency", xticks=[1, 4, 16, 64])
        axis.set_xticklabels(["1", "4", "16", "64"])
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
