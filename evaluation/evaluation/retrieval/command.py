"""``memloop-evaluate retrieval``: recall with and without each boost. The last line is one JSON object."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from evaluation.retrieval import ablation

_EMBEDDINGS = Path(".memloop/evaluate-retrieval.npz")
_GAIN = "recall10_gain_over_plain"


def main(arguments: Sequence[str]) -> None:
    """Measure every variant; print the table and the last line."""
    options = _parser().parse_args(arguments)
    rows = uvloop.run(ablation.run(ablation.variants(), seeds=ablation.REPORTED_ON, cache=options.embeddings))
    show(rows, Console(width=140))
    found = figures(rows)
    verdict = "met" if found[_GAIN] >= 0.0 else "missed"
    about = {"goals": {_GAIN: verdict}, "cores": os.cpu_count()}
    print(orjson.dumps({"evaluation": "retrieval", **found, **about}).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate retrieval", description=__doc__)
    parser.add_argument("--embeddings", type=Path, default=_EMBEDDINGS, help="file that keeps embeddings between runs")
    return parser


def figures(rows: Sequence[ablation.Row]) -> dict[str, float]:
    """Return recall at 10 in percent, and the gain over the two rankings alone in points."""
    by_name = {row.name: row.mean for row in rows}
    found = {"recall10": by_name["full"]} | {f"recall10_{name}": by_name[name] for name in ("dense", "bm25", "plain")}
    found[_GAIN] = by_name["full"] - by_name["plain"]
    return {name: round(value, 1) for name, value in found.items()}


def show(rows: Sequence[ablation.Row], console: Console) -> None:
    """Print the table; a gain's interval is that of the paired differences."""
    plain = next(row for row in rows if row.name == "plain")
    kinds = list(plain.by_kind)
    conversations = f"{len(ablation.REPORTED_ON)} made-up conversations held out from tuning"
    title = f"recall@{ablation.K} in %, {conversations}, 95 %"
    table = Table("search", "recall", "over plain", *kinds, title=title)
    for row in rows:
        gains = [mine - base for mine, base in zip(row.by_seed, plain.by_seed, strict=True)]
        gain = f"{row.mean - plain.mean:+.1f} ± {ablation.interval(gains):.1f}"
        own = f"{row.mean:.1f} ± {ablation.interval(row.by_seed):.1f}"
        table.add_row(row.name, own, gain, *(_percent(row.by_kind.get(kind)) for kind in kinds))
    console.print(table)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"
