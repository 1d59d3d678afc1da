"""Prints, keeps and draws the findings of runs. Figures that a run did not measure come from the kept run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from benchmarks.comparing import drop
from benchmarks.kept import FOLDER, Cells, write_dated
from benchmarks.long_read_strategies.measure import PLAIN
from benchmarks.long_read_strategies.plot import save_plot

WAYS = FOLDER / "long_read_strategies.json"
LENGTHS_FILE = FOLDER / "long_read_lengths.json"
PLOT = FOLDER / "long_read_lengths.svg"
SHORT, LONG = 8_192, 3_500_000
LENGTHS = (SHORT, 32_768, 131_072, 524_288, LONG)


def keep_ways(found: Mapping[str, object]) -> None:
    """Write the table of strategies and the evidence."""
    _write(WAYS, found)


def keep_lengths(rows: Sequence[Cells]) -> None:
    """Write the table of lengths, and the plot."""
    _write(LENGTHS_FILE, {"lengths": rows})
    save_plot(rows, PLOT)


def _write(path: Path, found: Mapping[str, object]) -> None:
    write_dated(path, found)


def kept_lengths() -> dict[str, Any]:
    """Return the kept run of lengths; empty if there is none."""
    return orjson.loads(LENGTHS_FILE.read_bytes()) if LENGTHS_FILE.exists() else {}


def headline(lengths: Sequence[Cells], earlier: Mapping[str, Any]) -> Cells:
    """Return exact match at 8K and 3.5M tokens and the loss between them.

    From ``lengths`` when they hold both, else from the ``earlier`` run, which ``kept`` then names.
    """
    now, then = _plain(lengths), _plain(earlier.get("lengths", ()))
    if now.keys() >= {SHORT, LONG} or not then:
        return _figures(now.get(SHORT), now.get(LONG))
    kept = {"file": f"benchmarks/results/{LENGTHS_FILE.name}", "date": earlier["date"], "machine": earlier["machine"]}
    return {**_figures(then.get(SHORT), then.get(LONG)), "from_kept": ["em_8k", "em_3500k"], "kept": kept}


def _plain(rows: Sequence[Cells]) -> dict[object, Cells]:
    return {row["document_tokens"]: row for row in rows if row["way"] == PLAIN.name}


def _figures(short: Cells | None, long: Cells | None) -> Cells:
    lost = drop(_right(short), _right(long)) if short and long else None
    return {
        "em_8k": _match(short),
        "em_8k_interval": _interval(short),
        "em_3500k": _match(long),
        "em_3500k_interval": _interval(long),
        "drop_8k_to_3500k_points": lost.points if lost else None,
        "drop_8k_to_3500k_interval": [lost.low, lost.high] if lost else None,
    }


def _right(row: Cells) -> list[bool]:
    """Return the documents of a row, the right ones first."""
    reads = int(str(row["reads"]))
    right = round(float(str(row["exact_match"])) * reads)
    return [True] * right + [False] * (reads - right)


def _match(row: Cells | None) -> object:
    return row["exact_match"] if row else None


def _interval(row: Cells | None) -> object:
    return [row["low"], row["high"]] if row else None
