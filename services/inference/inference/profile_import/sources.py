"""Reads the files of a snapshot or a checkout that someone else made."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1 << 20
"""The longest source file. Model cards and prompt modules have a few ten thousand bytes."""


class ImportRefused(ValueError):
    """A source lacks the expected texts; the message names the file, what was looked for, and what was found."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as it is on the disk. ``name`` is its path within the snapshot, with slashes."""

    name: str
    raw: bytes

    @property
    def text(self) -> str:
        """The file's text, line ends untouched."""
        return self.raw.decode("utf-8")

    @property
    def sha256(self) -> str:
        """The hash of the file's bytes, in hex."""
        return hashlib.sha256(self.raw).hexdigest()


def read_source(folder: Path, name: str) -> SourceFile:
    """Read ``folder/name``. Raises ImportRefused for anything but a small UTF-8 file that lies in the snapshot."""
    path = folder / name
    try:
        inside = path.resolve(strict=True).is_relative_to(_root(folder))
        raw = _read_regular(path) if inside else None
    except OSError as error:
        raise ImportRefused(f"{path}: expected this file; found none: {error.strerror}") from error
    if raw is None:
        raise ImportRefused(f"{path}: expected a file in the snapshot; found a link that leads out of it")
    if len(raw) > MOST_BYTES:
        raise ImportRefused(f"{path}: expected at most {MOST_BYTES} bytes; found more")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{path}: expected UTF-8 text; found {error.reason} at byte {error.start}") from error
    return SourceFile(name, raw)


def _root(folder: Path) -> Path:
    """Return the folder that links may lead to: a hub cache keeps the files of ``snapshots`` in ``blobs``."""
    real = folder.resolve(strict=True)
    return real.parent.parent if real.parent.name == "snapshots" else real


def _read_regular(path: Path) -> bytes:
    """Read at most one byte over the limit. Only regular files are opened: a named pipe would block the import."""
    if not path.is_file():
        raise ImportRefused(f"{path}: expected a file; found a folder or a device")
    with path.open("rb") as opened:
        return opened.read(MOST_BYTES + 1)
