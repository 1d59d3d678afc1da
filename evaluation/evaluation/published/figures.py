"""The figures that publications print, from ``figures.toml`` or a file of the user's."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from trainer.data.json_rows import DataError


class PublishedRow(BaseModel):
    """One row of a publication's table: ``figures`` in percent, by task and cell.

    ``models`` are the ids of its checkpoint without an owner; ``best``: a maximum over runs.
    """

    model_config = ConfigDict(extra="forbid")
    name: str
    models: tuple[str, ...]
    reader: Literal["loop", "direct"] = "loop"
    best: bool = False
    figures: dict[str, dict[str, float]]


class PublishedTable(BaseModel):
    """A publication's table. ``items``: the questions behind every cell, or by task and cell; empty if unknown.

    ``labels`` are the publication's own names of cells.
    """

    model_config = ConfigDict(extra="forbid")
    source: str
    items: int | dict[str, dict[str, int]] = {}
    labels: dict[str, str] = {}
    rows: tuple[PublishedRow, ...] = ()

    def rows_of(self, model: str, reader: str) -> tuple[PublishedRow, ...]:
        """Return the rows of a model, read in this way."""
        name = model.rstrip("/").rpartition("/")[2]
        return tuple(row for row in self.rows if row.reader == reader and name in row.models)

    def headline(self, reader: str) -> tuple[PublishedRow, ...]:
        """Return the rows of the table's first model that was read in this way."""
        first = next((row for row in self.rows if row.reader == reader), None)
        return () if first is None else self.rows_of(first.models[0], reader)

    def items_of(self, task: str, cell: str) -> int | None:
        """Return the number of questions behind a figure, if it is known."""
        return self.items if isinstance(self.items, int) else self.items.get(task, {}).get(cell)


_TABLES = TypeAdapter(dict[str, PublishedTable])


def published_tables(more: Path | None = None) -> Mapping[str, PublishedTable]:
    """Return the tables by command; those of ``more`` take the place of ours. Raises DataError."""
    tables = _read(files("evaluation.published").joinpath("figures.toml").read_text("utf-8"), "figures.toml")
    if more is None:
        return tables
    try:
        return {**tables, **_read(more.read_text("utf-8"), str(more))}
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{more} cannot be read as text") from error


def _read(text: str, where: str) -> dict[str, PublishedTable]:
    try:
        return _TABLES.validate_python(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise DataError(f"{where}: {error}") from error
