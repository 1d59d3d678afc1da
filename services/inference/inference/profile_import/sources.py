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
        return hashlib.sha256(self.raw).hexdigest()


def read_source(folder: Path, name: str) -> SourceFile:
    """Read ``folder/name``. Raises ImportRefused for anything but a small UTF-8 file that lies in the snapshot."""
    path = folder / name
    try:
        real = folder.resolve(strict=True)
        # Links may lead anywhere in the folder; a hub cache keeps the files of `snapshots` in `blobs`
        root = real.parent.parent if real.parent.name == "snapshots" else real
        if not path.resolve(strict=True).is_relative_to(root):
            raise ImportRefused(f"{path}: expected a file in the snapshot; found a link that leads out of it")
        if not path.is_file():  # a named pipe would block the import
            raise ImportRefused(f"{path}: expected a file; found a folder or a device")
        with path.open("rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise ImportRefused(f"{path}: expected this file; found none: {error.strerror}") from error
    if len(raw) > MOST_BYTES:
        raise ImportRefused(f"{path}: expected at most {MOST_BYTES} bytes; found more")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{path}: expected UTF-8 text; found {error.reason} at byte {error.start}") from error
    return SourceFile(name, raw)
