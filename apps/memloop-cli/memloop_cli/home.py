"""``.memloop``: where the local stack keeps its data, its logs, and the note that says how to reach it.

The note is written into a file whose lock the running stack holds: a stack that was killed leaves a file, but no lock.
"""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ValidationError

from memloop_cli.errors import CliError


class StackNote(BaseModel):
    """What a running stack says about itself."""

    pid: int
    status: Literal["starting", "ready"]
    url: str
    ports: dict[str, int]


class Home:
    """One stack's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def logs(self) -> Path:
        """One file per component."""
        return self.folder / "logs"

    @property
    def _file(self) -> Path:
        return self.folder / "stack.json"

    def running(self) -> StackNote | None:
        """The note of the stack that runs here; None when none does."""
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
        """Hold the lock, with the note in it. Raises CliError when a stack runs here already."""
        self.folder.mkdir(parents=True, exist_ok=True)
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
    """The running stack's hand on its note."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, note: StackNote) -> None:
        """Replace the note."""
        self.clear()
        self._file.write(note.model_dump_json())
        self._file.flush()

    def clear(self) -> None:
        """Take the note away."""
        self._file.seek(0)
        self._file.truncate()
        self._file.flush()


def gateway_url(home: Home, given: str | None) -> str:
    """The URL that was given, else that of the stack that runs here, else the usual one."""
    note = home.running() if given is None else None
    return given or (note.url if note and note.url else "http://127.0.0.1:7800")


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
