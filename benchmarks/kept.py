"""Keeps results in ``benchmarks/results/`` with date and machine, and prints tables."""

import datetime as dt
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).parent / "results"
Cells = dict[str, object]


def write_dated(path: Path, found: Mapping[str, object]) -> None:
    """Write a result as JSON, preceded by the date and the machine."""
    path.parent.mkdir(exist_ok=True)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    path.write_bytes(orjson.dumps({"date": today, "machine": machine(), **found}, option=options))


def machine() -> str:
    """Describe the machine."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {names[0] if names else platform.machine()}, {platform.system()}"


def show(title: str, rows: Sequence[Cells]) -> None:
    """Print a table of rows with equal columns."""
    table = Table(*(str(name) for name in rows[0]), title=title)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(width=160).print(table)
