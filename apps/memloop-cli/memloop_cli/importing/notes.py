"""What an import has done already, in a file: a killed import goes on without sending that again."""

from collections.abc import Iterable
from pathlib import Path


class DoneNotes:
    """Keys of records that the gateway has taken. Lines are appended, so that a kill loses the last one at most."""

    def __init__(self, file: Path, *, empty: bool = False) -> None:
        self._file = file
        there = file.is_file() and not empty
        self._done = frozenset(file.read_text(encoding="ascii").split()) if there else frozenset[str]()

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def note(self, keys: Iterable[str]) -> None:
        """Append keys. An earlier run's keys stay."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="ascii") as file:
            file.writelines(f"{key}\n" for key in keys)
