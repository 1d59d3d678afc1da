"""Writes Parquet as a stream: memory holds one row group, whatever the number of rows and their length."""

# pyarrow has no annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from memloop.wire.chat import Json

GROUP_CHARS = 16 << 20
_GROUP_ROWS = 1024


def write_parquet(rows: Iterable[Json], path: Path, schema: Any, *, group_chars: int = GROUP_CHARS) -> int:
    """Write the rows and return their count. The file appears only when complete, and not at all if a row fails.

    A row group ends after about ``group_chars`` characters of JSON. Raises OSError, and the errors of ``rows``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    count = 0
    try:
        with pq.ParquetWriter(unfinished, schema, compression="zstd", use_dictionary=False) as writer:
            for group in _groups(rows, group_chars):
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
                count += len(group)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def read_parquet(path: Path) -> Iterator[Json]:
    """Yield the rows of a file, one row group in memory at a time. Raises OSError, and ValueError for other formats."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield from cast(list[Json], file.read_row_group(group).to_pylist())


def _groups(rows: Iterable[Json], group_chars: int) -> Iterator[list[Json]]:
    group, chars = list[Json](), 0
    for row in rows:
        group.append(row)
        chars += len(json.dumps(row, ensure_ascii=False)) if "context" not in row else len(str(row["context"]))
        if chars >= group_chars or len(group) >= _GROUP_ROWS:
            yield group
            group, chars = [], 0
    if group:
        yield group
