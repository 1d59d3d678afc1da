"""Notices at a start what damaged files have cost: Qdrant Edge opens a collection over them without a word.

A small file holds how many points the last flush left on the disk. Writes after it only add points, unless one deletes:
the file goes before that, until the next flush. Then every point is read once, 2 s for 100,000: its fields, a sample of
its vectors, and whether each payload index holds what the fields hold. An index that does not is made anew from them.
"""

import logging
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import qdrant_edge as edge

from memory_store.vectors.edge_types import from_edge, index_of
from memory_store.vectors.schema import PAYLOAD_INDEXES, IndexKind

_LOG = logging.getLogger(__name__)
_PAGE: Final = 2_000
_SAMPLED: Final = 50
"""Every fiftieth point's vectors are read."""
_MOST_VALUES: Final = 1_000_000
_NAME: Final = "flushed-points"


class EdgeDamaged(RuntimeError):
    """Files of a collection are missing or damaged; the message names them and the way out."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"{path} is damaged: {problem}. Restore a backup (docs/backup.md); or, to begin empty, move this folder "
            f"and the file {path.parent / 'in-service'} away."
        )


class FlushedPoints:
    """The number of points that the last flush left in a collection's folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path / _NAME
        self.known = self._file.is_file()

    def check(self, count: int) -> None:
        """Raise ``EdgeDamaged`` when fewer points were loaded."""
        text = self._file.read_text() if self.known else "0"
        if not text.isdecimal():
            raise EdgeDamaged(self._path, f"{_NAME} holds no number")
        if count < int(text):
            raise EdgeDamaged(self._path, f"{count} of {text} memories can be read")

    def write(self, count: int) -> None:
        """Replace the number as a whole, on the disk when this returns."""
        replace_file(self._file, str(count))
        self.known = True

    def forget(self) -> None:
        """Remove the number, on the disk when this returns."""
        if self.known:
            self._file.unlink(missing_ok=True)
            sync_folder(self._path)
            self.known = False


def check_contents(path: Path, shard: edge.EdgeShard) -> None:
    """Read every point; make payload indexes anew that do not hold what the points hold.

    Raises ``EdgeDamaged`` where fields or vectors are lost, or an index stays wrong.
    """
    held: Counter[str] = Counter()
    total = bare = blank = 0
    offset = None
    while True:
        page = edge.ScrollRequest(offset=offset, limit=_PAGE, with_payload=True)
        records, offset = shard.scroll(page)
        total += len(records)
        bare += sum(not record.payload for record in records)
        for record in records:
            # How many values of each indexed field a point has
            fields = record.payload or {}
            values = {name: fields.get(name) for name, _ in PAYLOAD_INDEXES}
            held.update(
                {
                    name: len(cast(list[object], value)) if isinstance(value, list) else 1
                    for name, value in values.items()
                    if value is not None
                }
            )
        sample = [record.id for record in records[::_SAMPLED]]
        sampled = shard.retrieve(sample, with_payload=False, with_vector=True) if sample else []
        blank += sum(not any(from_edge(record).dense) for record in sampled)
        if offset is None:
            break
    if bare:
        raise EdgeDamaged(path, f"{bare} of {total} memories have lost their fields")
    if blank:
        raise EdgeDamaged(path, "memories have lost their vectors")
    for name, kind in _lacking(shard, held):
        _LOG.warning("the index of %s in %s is damaged and is made anew from the memories", name, path)
        shard.update(edge.UpdateOperation.delete_field_index(name))
        shard.update(edge.UpdateOperation.create_field_index(name, index_of(kind)))
    if wrong := _lacking(shard, held):
        raise EdgeDamaged(path, f"the index of {wrong[0][0]} lacks memories")


def _lacking(shard: edge.EdgeShard, held: Mapping[str, int]) -> list[tuple[str, IndexKind]]:
    """Return the indexes that do not hold what the points hold."""
    made = shard.info().payload_schema
    return [
        (name, kind)
        for name, kind in PAYLOAD_INDEXES
        if name in made and not _holds(shard, name, kind, held.get(name, 0))
    ]


def _holds(shard: edge.EdgeShard, name: str, kind: str, values: int) -> bool:
    """Return whether an index has so many values: exactly for words, at least one point's for each for numbers."""
    if kind in {"tenant", "keyword"}:
        hits = shard.facet(edge.FacetRequest(name, limit=_MOST_VALUES, exact=True)).hits
        return sum(hit.count for hit in hits) == values
    order = edge.OrderBy(name, edge.Direction.Asc)
    found, _ = shard.scroll(edge.ScrollRequest(limit=_MOST_VALUES, with_payload=False, order_by=order))
    return len(found) == values


def replace_file(path: Path, text: str) -> None:
    """Write a new file and move it over the old one, on the disk when this returns."""
    fresh = path.with_suffix(".new")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the folder's list of names durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
