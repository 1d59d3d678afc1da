"""Reads the rows of a JSONL file or a JSON array one at a time, so that a file may exceed the memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

_DECODER = json.JSONDecoder()
_BLOCK_CHARS = 1 << 16


class DataError(ValueError):
    """A file has the wrong content; the message names the file, the line and the reason."""


def rows(path: Path, *, block_chars: int = _BLOCK_CHARS) -> Iterator[tuple[int, object]]:
    """Yield each row with its first line number. An array is read in blocks. Raises DataError, also without a row."""
    line = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, row in _Array(file, path, block_chars).rows() if _is_array(file) else _lines(file, path):
                yield line, row
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error.reason}") from error
    if not line:
        raise DataError(f"{path} holds no row")


def _is_array(file: TextIO) -> bool:
    first = " "
    while first and first.isspace():
        first = file.read(1)
    file.seek(0)
    return first == "["


def _lines(file: TextIO, path: Path) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(file, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"{path}, line {number}: not JSON: {error.msg}") from error


class _Array:
    """An array of which only the current value is held. Reads double until the value is complete."""

    def __init__(self, file: TextIO, path: Path, block_chars: int) -> None:
        self._block_chars = block_chars
        self._file = file
        self._path = path
        self._held = ""
        self._line = 1

    def rows(self) -> Iterator[tuple[int, object]]:
        """Yield the values. Raises DataError."""
        self._take(self._blank() + 1)
        self._take(self._blank())
        mark = "]" if self._held.startswith("]") else ","
        while mark == ",":
            self._take(self._blank())
            line = self._line
            yield line, self._value()
            self._take(self._blank())
            mark = self._take(1)
        if mark != "]":
            raise DataError(f"{self._path}, line {self._line}: a comma or the array's end is missing")

    def _blank(self) -> int:
        """Return the length of the leading white space, reading on until another character or the end."""
        while not self._held.strip() and self._more():
            pass
        return len(self._held) - len(self._held.lstrip())

    def _value(self) -> object:
        while True:
            try:
                value, end = cast(tuple[object, int], _DECODER.raw_decode(self._held))
            except json.JSONDecodeError as error:
                if not self._more():
                    line = self._line + error.lineno - 1
                    raise DataError(f"{self._path}, line {line}: not JSON: {error.msg}") from error
            else:
                self._take(end)
                return value

    def _take(self, chars: int) -> str:
        taken, self._held = self._held[:chars], self._held[chars:]
        self._line += taken.count("\n")
        return taken

    def _more(self) -> bool:
        block = self._file.read(max(self._block_chars, len(self._held)))
        self._held += block
        return bool(block)
