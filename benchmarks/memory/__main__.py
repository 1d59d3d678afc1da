"""``python -m benchmarks.memory``: the speed runs and the retrieval ablation; ``evaluate`` judges files of your own."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.gateway.load import percentile
from benchmarks.memory import recall, speed
from benchmarks.memory.quality import command

_EMBEDDINGS = Path(".memloop/bench-memory.npz")
_GOALS = {  # bound, and whether the figure should be at least it
    "search_floor_ratio_100k": (1.5, False),
    "search_library_floor_ratio_100k": (1.5, False),
    "search_vs_mem0_1k": (1.0, False),
    "search_vs_mem0_10k": (1.0, False),
    "search_vs_mem0_100k": (1.0, False),
    "recall10_gain_over_rrf": (0.0, True),
    "add_vs_mem0": (5.0, True),
    "add_batch_vs_mem0": (20.0, True),
}


def main() -> None:
    """Run what the arguments name. The last line is one JSON object."""
    if sys.argv[1:2] == ["evaluate"]:
        command.main(sys.argv[2:])
        return
    arguments = _parser().parse_args()
    console = Console(width=140)
    load_before = os.getloadavg()[0]
    rows = uvloop.run(recall.run(recall.variants(), seeds=recall.REPORTED_ON, cache=_EMBEDDINGS))
    show_recall(rows, console)
    figures = recall_figures(rows)
    found = uvloop.run(speed.run(arguments.sizes, budget_s=arguments.budget))
    show_speed(found, console)
    figures |= speed_figures(found)
    verdicts = {name: _verdict(figures.get(name), *goal) for name, goal in _GOALS.items()}
    about = {"goals": verdicts, "cores": os.cpu_count(), "load_before": round(load_before, 2), "seconds": found.seconds}
    print(orjson.dumps({"benchmark": "memory", **figures, **about}).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=list(speed.SIZES), default=list(speed.SIZES))
    parser.add_argument("--budget", type=float, default=900.0, metavar="S", help="leave mem0 out where it is over")
    return parser


def speed_figures(found: speed.Speed) -> dict[str, float | None]:
    """The ratios of the last line."""
    ratios = {name: value for searches in found.searches for name, value in searches.figures().items()}
    return ratios | found.adds.figures()


def recall_figures(rows: Sequence[recall.Row]) -> dict[str, float | None]:
    """Recall at 10 in percent, and the gain over reciprocal rank fusion in points."""
    by_name = {row.name: row.mean for row in rows}
    figures = {"recall10": by_name["full"]} | {f"recall10_{name}": by_name[name] for name in ("dense", "bm25", "rrf")}
    figures["recall10_gain_over_rrf"] = by_name["full"] - by_name["rrf"]
    return {name: round(value, 1) for name, value in figures.items()}


def show_recall(rows: Sequence[recall.Row], console: Console) -> None:
    """The ablation; the interval of the gain is that of the paired differences."""
    plain = next(row for row in rows if row.name == "rrf")
    kinds = list(plain.by_kind)
    title = f"recall@{recall.K} in %, {len(recall.REPORTED_ON)} made-up conversations that nothing was tuned on, 95 %"
    table = Table("search", "recall", "over rrf", *kinds, title=title)
    for row in rows:
        gains = [mine - base for mine, base in zip(row.by_seed, plain.by_seed, strict=True)]
        told = f"{row.mean - plain.mean:+.1f} ± {recall.interval(gains):.1f}"
        ours = f"{row.mean:.1f} ± {recall.interval(row.by_seed):.1f}"
        table.add_row(row.name, ours, told, *(f"{row.by_kind[kind]:.0f}" for kind in kinds))
    console.print(table)


def show_speed(found: speed.Speed, console: Console) -> None:
    """The tables for people."""
    table = Table("items", "who", "searches", "p50 ms", "p99 ms", title="search, one at a time, other question each")
    for searches in found.searches:
        for name, times in (
            ("memloop", searches.ours),
            ("floor, our encoder", searches.floor),
            ("floor, sentence-transformers", searches.library_floor),
            ("mem0", searches.mem0),
        ):
            if times is not None:
                row = (f"{len(times)}", f"{percentile(times, 50):.2f}", f"{percentile(times, 99):.2f}")
                table.add_row(searches.size, name, *row)
    console.print(table)
    adds = Table("adds per second", "memloop", "mem0", title=f"{speed.ADD_CLIENTS} clients; batches of {speed.BATCH}")
    adds.add_row("one by one", f"{found.adds.single:.0f}", f"{found.adds.mem0_single:.0f}")
    adds.add_row("in batches", f"{found.adds.batch:.0f}", f"{found.adds.mem0_batch:.0f}")
    adds.add_row("the encoder alone, batches of 32", f"{found.adds.encoder:.0f}", "")
    console.print(adds)
    console.print(_SAID)


_SAID = """\
Items were loaded with the vectors at hand, ours and mem0's through their own vector stores: embedding 100,000 texts
would take longer than all else; 2,000 are embedded, the rest are these, turned a little. mem0 is the open-source
Memory with its default store (Qdrant in process, on disk), called by one thread as its documentation does; its
embedder uses all cores."""


def _verdict(value: float | None, bound: float, at_least: bool) -> str:
    if value is None:
        return "not measured"
    return "met" if (value >= bound if at_least else value <= bound) else "missed"


if __name__ == "__main__":
    sys.exit(main())
