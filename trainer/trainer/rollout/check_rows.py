"""Compares the data set's files with the recipe: their loops, columns and number of rows."""

# pyarrow and omegaconf are largely untyped.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from trainer.data.parquet import read_parquet
from trainer.rollout.recipe import Composed
from trainer.rollout.tasks import DecideTask, ReadTask

_OF_VERL: Final = ("prompt", "data_source", "reward_model")
_AGENT: Final = "agent_name"


def check_rows(recipe: Composed) -> Iterator[str]:
    """Yield every reason why the recipe cannot train on its files."""
    data: Any = recipe.config.data
    for key in ("train_files", "val_files"):
        named = data[key]
        for file in [named] if isinstance(named, str) else list(named or ()):
            yield from _file(f"data.{key}={file}", Path(file), recipe)
    yield from _enough(recipe)


def _file(name: str, file: Path, recipe: Composed) -> Iterator[str]:
    if not file.is_file():
        yield f"{name}: there is no such file (`python -m trainer data --help` makes data sets)"
    elif file.suffix == ".parquet":
        try:
            yield from _parquet(name, file, recipe)
        except pa.ArrowInvalid as error:
            yield f"{name}: not readable as Parquet ({error})"


def _parquet(name: str, file: Path, recipe: Composed) -> Iterator[str]:
    with pq.ParquetFile(file) as table:
        columns = table.schema_arrow.names
        if missing := [column for column in _OF_VERL if column not in columns]:
            yield f"{name}: its rows have no {', '.join(missing)}"
        elif not table.metadata.num_rows:
            yield f"{name}: it has no rows"
        elif recipe.settings.agent is None:
            yield from _loops(name, table, recipe)
            yield from _first_row(name, file, recipe)


def _loops(name: str, table: Any, recipe: Composed) -> Iterator[str]:
    """Compare the loops that the rows name with the recipe's; rows that name none run the recipe's own."""
    if _AGENT not in table.schema_arrow.names:
        return
    named = set(table.read(columns=[_AGENT])[_AGENT].unique().to_pylist())
    if strange := sorted(str(loop) for loop in named - set(recipe.loops)):
        yield (
            f"{name}: its rows are for {', '.join(strange)}, the recipe trains {', '.join(recipe.loops)} "
            "(memloop.loops names several)"
        )


def _first_row(name: str, file: Path, recipe: Composed) -> Iterator[str]:
    row = next(read_parquet(file))
    loop = row.get(_AGENT) or recipe.loops[0]
    task = DecideTask if loop == "memreader" else ReadTask
    try:
        task.of_row(row)
    except ValidationError as error:
        places = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors())
        yield f"{name}: its rows are not {loop}'s ({places})"


def _enough(recipe: Composed) -> Iterator[str]:
    """An epoch has whole batches: with fewer rows than one batch, a run would end without a step."""
    data: Any = recipe.config.data
    files = [data.train_files] if isinstance(data.train_files, str) else list(data.train_files or ())
    held = [Path(file) for file in files if Path(file).is_file() and Path(file).suffix == ".parquet"]
    try:
        rows = sum(pq.read_metadata(file).num_rows for file in held)
    except pa.ArrowInvalid:
        return  # reported already
    if len(held) == len(files) and rows < data.train_batch_size:
        yield f"data.train_files: {rows} rows, but a batch has data.train_batch_size={data.train_batch_size}"
