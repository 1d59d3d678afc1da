"""``python -m benchmarks.memory``: searches and adds beside mem0 and the bare parts; the last line is JSON."""

import argparse
import os
import sys

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.memory import speed
from benchmarks.memory.corpus import SIZES
from memloop.scoring.comparison import percentile

_GOALS = {  # bound, and whether the figure should be at least it
    "search_floor_ratio_100k": (2.0, False),
    "search_library_floor_ratio_100k": (1.5, False),
    "search_vs_mem0_1k": (1.0, False),
    "search_vs_mem0_10k": (1.0, False),
    "search_vs_mem0_100k": (1.0, False),
    "add_vs_encoder": (0.6, True),
    "add_batch_vs_encoder": (0.9, True),
    "add_vs_mem0": (5.0, True),
    "add_batch_vs_mem0": (20.0, True),
}


def main() -> None:
    """Run the requested measurements. The last line is one JSON object."""
    arguments = _parser().parse_args()
    console = Console(width=140)
    load_before = os.getloadavg()[0]
    found = uvloop.run(speed.run(arguments.sizes, budget_s=arguments.budget))
    show_speed(found, console)
    figures = speed_figures(found)
    verdicts = {name: _verdict(figures.get(name), *goal) for name, goal in _GOALS.items()}
    about = {"goals": verdicts, "cores": os.cpu_count(), "load_before": round(load_before, 2), "seconds": found.seconds}
    print(orjson.dumps({"benchmark": "memory", **figures, **about}).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--budget", type=float, default=900.0, metavar="S", help="skip mem0 when the budget is spent")
    return parser


def speed_figures(found: speed.Speed) -> dict[str, float | None]:
    """Return the ratios of the last line."""
    ratios = {name: value for searches in found.searches for name, value in searches.figures().items()}
    return ratios | found.adds.figures()


def show_speed(found: speed.Speed, console: Console) -> None:
    """Print the tables."""
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
    console.print(_VERDICTS)


_VERDICTS = """\
Items were loaded with precomputed vectors, ours and mem0's through their own vector stores: embedding 100,000 texts
would dominate the run; 2,000 are embedded, the rest are these, slightly rotated. mem0 is the open-source
Memory with its default store (Qdrant in process, on disk), called by one thread as its documentation does; its
embedder uses all cores."""


def _verdict(value: float | None, bound: float, at_least: bool) -> str:
    if value is None:
        return "not measured"
    return "met" if (value >= bound if at_least else value <= bound) else "missed"


if __name__ == "__main__":
    sys.exit(main())
