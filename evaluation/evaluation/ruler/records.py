"""What became of each item, one JSON line each, kept on the disk before the run goes on."""

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
    """One item read once. ``raw`` is the whole reply, None where only the parsed answer is known (a gateway's).

    ``error`` says why there is no answer; ``attempts`` counts the reads that it took, ``seconds`` is all their time.
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

    @property
    def key(self) -> RecordKey:
        """Which item and seed it is of."""
        return self.task, self.size, self.index, self.digest, self.seed


def record_key(item: Item, seed: int) -> RecordKey:
    """The key of the record that the item will have."""
    return *item.key, seed


_RECORD = TypeAdapter(Record)


class Results(Journal[Record]):
    """The results file of a run. Raises as ``Journal`` does."""

    def __init__(self, path: Path, run: dict[str, object]) -> None:
        super().__init__(path, run, records=_RECORD, key_of=lambda record: record.key)

    def has(self, key: RecordKey) -> bool:
        """Whether there is an answer; what failed is to be read again."""
        record = self.get(key)
        return record is not None and record.error is None
