"""What a run found: printed, kept, and drawn. Figures that a run had no time for come from the run that was kept."""

import datetime as dt
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.long_read_strategies.measure import PLAIN
from benchmarks.long_read_strategies.plot import save_plot

FOLDER = Path(__file__).parent.parent / "results"
KEPT = FOLDER / "long_read_strategies.json"
PLOT = FOLDER / "long_read_strategies.svg"
SHORT, LONG = 8_192, 3_500_000

Cells = dict[str, object]


def machine() -> str:
    """The kind of machine, in words."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {names[0] if names else platform.machine()}, {platform.system()}"


def show(title: str, rows: Sequence[Cells]) -> None:
    """A table of rows of equal columns."""
    table = Table(*(str(name) for name in rows[0]), title=title)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(width=160).print(table)


def keep(found: Mapping[str, object]) -> None:
    """Write the result with its date and machine, and the plot."""
    FOLDER.mkdir(exist_ok=True)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    KEPT.write_bytes(orjson.dumps({"date": today, "machine": machine(), **found}, option=options))
    save_plot(cast(Sequence[Cells], found["lengths"]), PLOT)


def kept() -> dict[str, Any]:
    """The run that was kept; empty when there is none."""
    return orjson.loads(KEPT.read_bytes()) if KEPT.exists() else {}


def headline(lengths: Sequence[Cells], speedup: float, *, seconds_speedup: float | None) -> Cells:
    """The figures of the benchmark's last line; ``from_kept`` names those that an earlier, longer run measured."""
    earlier = kept()
    source = {f"{row['way']} {row['document_tokens']}": row for row in earlier.get("lengths", ())}
    now = {f"{row['way']} {row['document_tokens']}": row for row in lengths}
    short, long = (now.get(key) or source.get(key) for key in (f"{PLAIN.name} {SHORT}", f"{PLAIN.name} {LONG}"))
    old = [name for name, size in (("em_8k", SHORT), ("em_3500k", LONG)) if f"{PLAIN.name} {size}" not in now]
    found: Cells = {
        "em_8k": _match(short),
        "em_8k_interval": _interval(short),
        "em_3500k": _match(long),
        "em_3500k_interval": _interval(long),
        "drop_8k_to_3500k_points": _drop(short, long),
        "parallel8_speedup": speedup,
        "parallel8_speedup_tiny_engine": seconds_speedup,
        "from_kept": [name for name in old if (short if name == "em_8k" else long)],
    }
    if found["from_kept"]:
        found["kept"] = {"file": f"benchmarks/results/{KEPT.name}", **{k: earlier[k] for k in ("date", "machine")}}
    return found


def _match(row: Cells | None) -> object:
    return row["exact_match"] if row else None


def _interval(row: Cells | None) -> object:
    return [row["low"], row["high"]] if row else None


def _drop(short: Cells | None, long: Cells | None) -> float | None:
    if short is None or long is None:
        return None
    return round(100 * (float(str(short["exact_match"])) - float(str(long["exact_match"]))), 2)
