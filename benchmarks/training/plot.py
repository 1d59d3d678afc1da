"""Draws two figures: held-out answers by step of the run, and right answers by document length."""

# matplotlib's own types are partly unknown.
# pyright: reportUnknownMemberType=false
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.training.results import Curve, Row

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "memloop"


def save_curves(curves: Sequence[Curve], path: Path) -> None:
    """Write the learning curves as SVG."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for curve in curves:
        (line,) = axes.plot(*zip(*curve["held_out"], strict=True), marker="o", label=f"held out, seed {curve['seed']}")
        axes.plot(*zip(*curve["sampled"], strict=True), color=line.get_color(), alpha=0.35, linewidth=1)
    axes.set_xlabel("GRPO step of 128 rollouts")
    axes.set_ylabel("exact match (strict), %")
    axes.set_title("held-out documents, greedy (dots), and the rollouts, at temperature 1 (thin)")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def save_lengths(rows: Sequence[Row], path: Path) -> None:
    """Plot right answers against length as SVG, a line per policy and seed, bars for the intervals."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    order = sorted(rows, key=lambda row: (row["policy"], row["seed"], row["times"]))
    for (policy, seed), own in groupby(order, key=lambda row: (row["policy"], row["seed"])):
        line = list(own)
        height = [row["strict"] for row in line]
        below = [row["strict"] - row["low"] for row in line]
        above = [row["high"] - row["strict"] for row in line]
        label = policy if policy == "before" else f"{policy}, seed {seed}"
        axes.errorbar([row["times"] for row in line], height, yerr=[below, above], marker="o", capsize=3, label=label)
    times = sorted({row["times"] for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(times, [f"{each}×" for each in times])
    axes.minorticks_off()
    axes.set_ylim(0, 105)
    axes.set_xlabel("document length, in training lengths of 4 chunks")
    axes.set_ylabel("exact match (strict), %")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower left")
    figure.savefig(path, metadata={"Date": None})
