"""Reads files of any size record by record: JSON lists and JSON lines, also inside a ZIP archive."""

import json
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

import ijson  # pyright: ignore[reportMissingTypeStubs]

from memloop_cli.errors import BadInput

_LINE_BYTES: Final = 64 << 20
_HEAD_BYTES: Final = 1 << 16
_BROKEN: Final = (ijson.JSONError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class Record:
    """A value with its number from 1: a line's, or its place in the list. ``problem``: why it is missing."""

    number: int
    value: object = None
    problem: str = ""


@contextmanager
def opened(path: Path, members: tuple[str, ...] = ("",)) -> Generator[Sequence[IO[bytes]]]:
    """Open a file, or what a folder or a ZIP archive holds of the members: files or folders of such names.

    The name of a file may go on after the member's, as in ``conversations-001.json``. Raises BadInput.
    """
    with ExitStack() as stack:
        try:
            if path.is_dir():
                yield tuple(stack.enter_context(one.open("rb")) for one in _in_folder(path, members))
            elif zipfile.is_zipfile(path):
                archive = stack.enter_context(zipfile.ZipFile(path))
                yield tuple(stack.enter_context(archive.open(name)) for name in _in_archive(archive, path, members))
            else:
                yield (stack.enter_context(path.open("rb")),)
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror or 'it is damaged'}") from error
        except zipfile.BadZipFile as error:
            raise BadInput(f"the archive {path} is damaged") from error


def _in_folder(folder: Path, members: tuple[str, ...]) -> Sequence[Path]:
    """Return the files of an unpacked archive. Raises BadInput."""
    inside = (path for path in folder.rglob("*.json") if path.is_file())
    found = sorted(path for path in inside if _is_member(path.relative_to(folder).as_posix(), members))
    if not found:
        raise BadInput(f"the folder {folder} holds no {_named(members)}")
    return found


def _in_archive(archive: zipfile.ZipFile, path: Path, members: tuple[str, ...]) -> Sequence[str]:
    found = sorted(name for name in archive.namelist() if _is_member(name, members))
    if not found:
        raise BadInput(f"the archive {path} holds no {_named(members)}")
    return found


def _is_member(name: str, members: tuple[str, ...]) -> bool:
    path = PurePosixPath(name)
    return path.suffix == ".json" and (path.name.startswith(members) or path.parent.name in members)


def _named(members: tuple[str, ...]) -> str:
    return " or ".join(f"{member}.json" for member in members)


def records(file: IO[bytes], *, inside: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the records of a list, of a list inside an object's field ``inside``, or of lines.

    One record is in memory at a time. Broken lines are reported and skipped; a list that is broken ends there.
    """
    head = file.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
    start = head.lstrip()
    file.seek(0)
    if start.startswith(b"[") and not _is_line_of_several(start):
        yield from _items(file, "item")
    elif _is_line(start, inside):
        yield from _lines(file)
    else:
        yield from _inside(file, inside)


def _is_line_of_several(start: bytes) -> bool:
    """Return whether the first line is a whole list, with more behind it."""
    line, _, rest = start.partition(b"\n")
    return bool(rest.strip()) and not _parsed(1, line).problem


def _is_line(start: bytes, inside: Sequence[str]) -> bool:
    """Return whether the first line is a record by itself, or no JSON at all."""
    line, newline, _ = start.partition(b"\n")
    if not start.startswith(b"{"):
        return True
    try:
        first: object = json.loads(line)
    except ValueError:
        return bool(newline) and line.rstrip().endswith(b"}")
    return not (isinstance(first, dict) and any(name in first for name in inside))


def _inside(file: IO[bytes], inside: Sequence[str]) -> Iterator[Record]:
    for name in inside:
        file.seek(0)
        number = 0
        for record in _items(file, f"{name}.item"):
            number = record.number
            yield record
        if number:
            return
    file.seek(0)
    yield from _whole(file)


def _whole(file: IO[bytes]) -> Iterator[Record]:
    raw = file.read(_LINE_BYTES + 1)
    if len(raw) > _LINE_BYTES:
        yield Record(1, problem=f"a single object of more than {_LINE_BYTES} bytes")
        return
    yield _parsed(1, raw)


def _items(file: IO[bytes], prefix: str) -> Iterator[Record]:
    number = 0
    parsed = cast("Iterator[Any]", ijson.items(file, prefix, use_float=True))  # pyright: ignore[reportUnknownMemberType]
    while True:
        try:
            value: object = next(parsed)
        except StopIteration:
            return
        except _BROKEN:
            yield Record(number + 1, problem="the JSON is broken here; what follows cannot be read")
            return
        number += 1
        yield Record(number, value)


def _lines(file: IO[bytes]) -> Iterator[Record]:
    number = 0
    while line := file.readline(_LINE_BYTES + 1):
        number += 1
        if len(line) > _LINE_BYTES:
            yield Record(number, problem=f"a line of more than {_LINE_BYTES} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(_LINE_BYTES)
        elif line.strip():
            yield _parsed(number, line)


def _parsed(number: int, raw: bytes) -> Record:
    try:
        return Record(number, json.loads(raw.removeprefix(b"\xef\xbb\xbf")))
    except (ValueError, RecursionError):
        return Record(number, problem="not JSON")
