"""Reads the held-out rows on which candidate and incumbent are measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, get_args

from pydantic import ValidationError

from memloop.wire.chat import Json
from trainer.data.json_rows import DataError
from trainer.data.parquet import read_parquet
from trainer.data.rows import AgentName
from trainer.rollout.tasks import DecideTask, ReadTask

Task: TypeAlias = ReadTask | DecideTask
WRITER: Final[AgentName] = "memreader"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """``count`` rows of a file, for one loop. Each iteration rereads them, one row group in memory.

    ``sha256`` is of the file.
    """

    path: Path
    loop: AgentName
    sha256: str
    count: int

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield each row's number in the file, from 0, and its task. Raises DataError."""
        return _tasks(self.path, self.loop)


def open_held_out(path: Path, loop: AgentName | None) -> HeldOut:
    """Open the file's rows for the loop; by default for the only loop in its rows.

    Rows of both reading loops work with either. Raises DataError when a row has another shape, or the file is empty.
    """
    loop = loop or _only_loop(path)
    count = sum(1 for _ in _tasks(path, loop))
    if not count:
        raise DataError(f"{path} holds no row for {loop}")
    with path.open("rb") as file:
        return HeldOut(path, loop, hashlib.file_digest(file, "sha256").hexdigest(), count)


def _only_loop(path: Path) -> AgentName:
    found = sorted({str(row.get("agent_name")) for _, row in _rows(path)})
    known = [name for name in get_args(AgentName) if found == [name]]
    if not known:
        raise DataError(
            f"{path}: its rows are for {', '.join(found) or 'no loop: it is empty'}; choose one with --loop"
        )
    return known[0]


def _tasks(path: Path, loop: AgentName) -> Iterator[tuple[int, Task]]:
    shape = DecideTask if loop == WRITER else ReadTask
    for number, row in _rows(path):
        if (row.get("agent_name") == WRITER) != (loop == WRITER):
            continue
        try:
            yield number, shape.of_row(row)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise DataError(f"{path}, row {number}: {where}: {error.errors()[0]['msg']}") from error


def _rows(path: Path) -> Iterator[tuple[int, Json]]:
    try:
        yield from enumerate(read_parquet(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
