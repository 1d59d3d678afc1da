"""``.memloop``: the local stack's data, logs and address note.

The running stack holds a lock on the note's file: a killed stack leaves the file without a lock.
"""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ValidationError

from memloop_cli.errors import CliError


class StackNote(BaseModel):
    """The address and process of a running stack."""

    pid: int
    status: Literal["starting", "ready"]
    url: str
    ports: dict[str, int]


class Home:
    """The folder of one stack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def logs(self) -> Path:
        """The log folder, with one file per component."""
        return self.folder / "logs"

    @property
    def _file(self) -> Path:
        return self.folder / "stack.json"

    def running(self) -> StackNote | None:
        """Return the running stack's note, or None."""
        if not self._file.is_file():
            return None
        with self._file.open("r+") as file:
            if _lock(file):
                return None
            try:
                return StackNote.model_validate_json(file.read())
            except ValidationError:
                return StackNote(pid=0, status="starting", url="", ports={})

    @contextmanager
    def held(self, note: StackNote) -> Generator["Holder"]:
        """Hold the lock on the note. Raises CliError when a stack runs here already."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        with self._file.open("a+") as file:
            if not _lock(file):
                running = self.running()
                where = f" (pid {running.pid}, {running.url})" if running else ""
                raise CliError(f"a stack runs here already{where}: `memloop down` stops it")
            holder = Holder(file)
            holder.write(note)
            try:
                yield holder
            finally:
                holder.clear()


class Holder:
    """The running stack's lock on its note."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, note: StackNote) -> None:
        """Replace the note."""
        self.clear()
        self._file.write(note.model_dump_json())
        self._file.flush()

    def clear(self) -> None:
        """Delete the note."""
        self._file.seek(0)
        self._file.truncate()
        self._file.flush()


def gateway_url(home: Home, given: str | None) -> str:
    """Return the given URL, else that of the running stack, else the default."""
    note = home.running() if given is None else None
    return given or (note.url if note and note.url else "http://127.0.0.1:7800")


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
