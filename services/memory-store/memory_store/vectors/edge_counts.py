"""Notices at a start that Qdrant Edge lost points: it opens a collection whose files were damaged without a word.

A small file holds how many points the last flush left on the disk. Writes after it only add points, unless one deletes:
the file goes before that, until the next flush.
"""

import os
from pathlib import Path
from typing import Final

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
        fresh = self._file.with_suffix(".new")
        with fresh.open("w") as file:
            file.write(str(count))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._file)
        sync_folder(self._path)
        self.known = True

    def forget(self) -> None:
        """Remove the number, on the disk when this returns."""
        if self.known:
            self._file.unlink(missing_ok=True)
            sync_folder(self._path)
            self.known = False


def sync_folder(path: Path) -> None:
    """Make the folder's list of names durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
