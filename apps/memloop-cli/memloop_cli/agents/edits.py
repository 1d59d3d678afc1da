"""Changes of files that belong to other programs: shown first, written whole or not at all, with a backup."""

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memloop_cli.errors import CliError

_PRIVATE = 0o600
_BACKUP = ".memloop-backup"


@dataclass(frozen=True, slots=True)
class Edit:
    """A file before and after. None: it does not exist. ``ours``: no other program writes it, so it needs no backup."""

    path: Path
    before: str | None
    after: str | None
    ours: bool = False

    @property
    def changes(self) -> bool:
        """Whether anything is different afterwards."""
        return self.before != self.after

    def diff(self) -> Iterator[str]:
        """Return the lines of a unified diff."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        names = (str(self.path) if self.before is not None else "/dev/null", str(self.path))
        return difflib.unified_diff(before, after, *names, lineterm="")

    def apply(self) -> Path | None:
        """Write the file and return its backup, if there was one before.

        Raises CliError when the file has changed since it was read, or cannot be written.
        """
        target = self.path.resolve()
        try:
            if read_text(target) != self.before:
                raise CliError(f"{self.path} has changed meanwhile; run the command again")
            backup = _backed_up(target) if self.before is not None and not self.ours else None
            if self.after is None:
                target.unlink()
            else:
                write_whole(target, self.after)
        except OSError as error:
            raise CliError(f"{self.path} cannot be written: {error.strerror}") from error
        return backup


def read_text(path: Path) -> str | None:
    """Return the file's text; None without the file. Raises CliError."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{path} cannot be read: {error}") from error


def _backed_up(path: Path) -> Path:
    """Copy the file beside itself, under a name that is free."""
    copy, number = path.with_name(path.name + _BACKUP), 1
    while copy.exists():
        copy, number = path.with_name(f"{path.name}{_BACKUP}.{number}"), number + 1
    shutil.copy2(path, copy)
    return copy


def write_whole(path: Path, text: str) -> None:
    """Put the text in the place of the file in one step. A new file can be read by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode if path.exists() else _PRIVATE
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode & 0o777)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
