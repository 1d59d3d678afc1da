"""What became of each item, one JSON line each, kept on the disk before the run goes on."""

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError

from benchmarks.ruler.items import Item
from benchmarks.ruler.json_rows import DataError

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


class Results:
    """A results file: its first line says what was run, each other line is a record; a later one replaces an earlier.

    A file that a kill left with half a line is cut back to its last whole one. Raises DataError when the file is of
    another run, holds anything else, or is in use.
    """

    def __init__(self, path: Path, run: dict[str, object]) -> None:
        self._path = path
        self._records: dict[RecordKey, Record] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab+")
        try:
            self._lock()
            self._load(json.loads(json.dumps(run)))
        except BaseException:
            self._file.close()
            raise

    @property
    def records(self) -> Sequence[Record]:
        """The last record of each item and seed."""
        return tuple(self._records.values())

    def has(self, key: RecordKey) -> bool:
        """Whether there is an answer; what failed is to be read again."""
        record = self._records.get(key)
        return record is not None and record.error is None

    def append(self, record: Record) -> None:
        """Keep a record; it is on the disk when this returns."""
        self._write(asdict(record))
        self._records[record.key] = record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(f"{self._path} is in use by another run") from error

    def _load(self, run: dict[str, object]) -> None:
        self._file.seek(0)
        held = self._file.read()
        whole = held[: held.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        head, *lines = whole.splitlines() or [b""]
        if not head:
            self._write(run)
            return
        self._check_run(head, run)
        for number, line in enumerate(lines, 2):
            record = self._record(line, number)
            self._records[record.key] = record

    def _check_run(self, head: bytes, run: dict[str, object]) -> None:
        earlier = self._json(head, 1)
        if earlier == run:
            return
        names = sorted(name for name in {*earlier, *run} if earlier.get(name) != run.get(name))
        raise DataError(f"{self._path} is of another run: {', '.join(names)} differ; give another --out")

    def _record(self, line: bytes, number: int) -> Record:
        try:
            return _RECORD.validate_python(self._json(line, number))
        except ValidationError as error:
            raise DataError(f"{self._path}, line {number}: no record") from error

    def _json(self, line: bytes, number: int) -> dict[str, object]:
        try:
            return cast(dict[str, object], json.loads(line))
        except ValueError as error:
            raise DataError(f"{self._path}, line {number}: no JSON") from error

    def _write(self, value: dict[str, object]) -> None:
        self._file.write(json.dumps(value).encode("ascii") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
