"""Records each finished piece of work as a JSON line, on disk before the run continues."""

import fcntl
import json
import os
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Generic, Self, TypeVar

from pydantic import TypeAdapter

from trainer.data.json_rows import DataError

T = TypeVar("T")
_RUN: Final = TypeAdapter(dict[str, object])


class Journal(Generic[T]):
    """A file whose first line describes the run; the others are records, of which a later one replaces an earlier.

    An incomplete last line, left by a kill, is cut off. Raises DataError when the file is of another run, holds
    anything else, or is in use; it then stays as it is.
    """

    def __init__(
        self, path: Path, run: dict[str, object], *, records: TypeAdapter[T], key_of: Callable[[T], Hashable]
    ) -> None:
        self._path = path
        self._adapter = records
        self._key_of = key_of
        self._records: dict[Hashable, T] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab+")
        try:
            self._lock()
            self._load(json.loads(json.dumps(run)))
        except BaseException:
            self._file.close()
            raise

    @property
    def records(self) -> Sequence[T]:
        """Return the last record of each key."""
        return tuple(self._records.values())

    def get(self, key: Hashable) -> T | None:
        """Return the last record of the key."""
        return self._records.get(key)

    def append(self, record: T) -> None:
        """Append a record; it is on disk when this returns."""
        self._write(self._adapter.dump_python(record))
        self._records[self._key_of(record)] = record

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
        head, *lines = whole.splitlines() or [b""]
        if whole:
            self._check_run(head, run)
        elif not _line(run).startswith(held):  # nothing, or what a kill left of our own first line
            raise DataError(f"{self._path} is not a journal of this run; give another --out")
        for number, line in enumerate(lines, 2):
            record = self._record(line, number)
            self._records[self._key_of(record)] = record
        self._file.truncate(len(whole))
        if not whole:
            self._write(run)

    def _check_run(self, head: bytes, run: dict[str, object]) -> None:
        try:
            earlier = _RUN.validate_python(json.loads(head))
        except ValueError as error:  # includes pydantic's
            raise DataError(f"{self._path}, line 1: not the description of a run") from error
        names = sorted(name for name in {*earlier, *run} if earlier.get(name) != run.get(name))
        if names:
            raise DataError(f"{self._path} is of another run: {', '.join(names)} differ; give another --out")

    def _record(self, line: bytes, number: int) -> T:
        try:
            return self._adapter.validate_python(json.loads(line))
        except ValueError as error:  # includes pydantic's
            raise DataError(f"{self._path}, line {number}: not a record") from error

    def _write(self, value: object) -> None:
        self._file.write(_line(value))
        self._file.flush()
        os.fsync(self._file.fileno())


def _line(value: object) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"
