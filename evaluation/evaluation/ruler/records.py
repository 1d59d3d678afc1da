"""Keeps each item's outcome as a JSON line, written to disk before the run continues."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter

from evaluation.ruler.items import Item
from trainer.data.journal import Journal

RecordKey: TypeAlias = tuple[str, int, int, str, int]
"""An item's key, and the seed."""


@dataclass(frozen=True, slots=True)
class Record:
    """One item read once; ``kind`` as in ``Item``.

    ``raw`` is the whole reply, None if only the parsed answer is available (gateways). ``error`` is the reason for a
    missing answer; ``attempts`` counts its reads, ``seconds`` is their total time.
    """

    task: str
    size: int
    index: int
    digest: str
    seed: int
    golds: tuple[str, ...]
    engine: str
    answer: str = ""
    raw: str | None = None
    error: str | None = None
    attempts: int = 1
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    kind: str = ""

    @property
    def key(self) -> RecordKey:
        """Return the item and seed."""
        return self.task, self.size, self.index, self.digest, self.seed


def record_key(item: Item, seed: int) -> RecordKey:
    """Return the key of the item's future record."""
    return *item.key, seed


_RECORD = TypeAdapter(Record)


class Results(Journal[Record]):
    """A run's results file. Raises as ``Journal`` does."""

    def __init__(self, path: Path, run: dict[str, object]) -> None:
        super().__init__(path, run, records=_RECORD, key_of=lambda record: record.key)

    def has(self, key: RecordKey) -> bool:
        """Return whether an answer exists; failed items are read again."""
        record = self.get(key)
        return record is not None and record.error is None
