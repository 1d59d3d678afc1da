"""Puts marked blocks of lines into a TOML file of another program; comments and order of the rest stay.

Keys of the root come first, before any table; tables come last.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from memloop_cli.agents.edits import Edit, read_text
from memloop_cli.errors import CliError

_BEGIN: Final = "# >>> memloop: written by `memloop connect`; `--remove` takes it out"
_END: Final = "# <<< memloop"


def connected(path: Path, keys: Mapping[str, str], tables: Mapping[str, Mapping[str, str]]) -> Edit:
    """Return the edit after which the file has these keys and tables, and nothing that an earlier call put there.

    Values are TOML. Empty mappings remove. Raises CliError when the file sets one of the keys or tables itself.
    """
    before = read_text(path)
    rest = _without_blocks(before or "")
    _refuse_conflicts(path, _parsed(path, rest), keys, tables)
    head = _block([f"{name} = {value}" for name, value in keys.items()])
    tail = _block([line for name, table in tables.items() for line in _table(name, table)])
    parts = [part for part in (head, rest.strip("\n"), tail) if part]
    after = "\n\n".join(parts) + "\n" if parts else None
    _parsed(path, after or "")
    unchanged = not keys and not tables and before == rest
    return Edit(path, before, before if unchanged else after)


def _table(name: str, table: Mapping[str, str]) -> Sequence[str]:
    return (f"[{name}]", *(f"{key} = {value}" for key, value in table.items()))


def _block(lines: Sequence[str]) -> str:
    return "\n".join((_BEGIN, *lines, _END)) if lines else ""


def _without_blocks(text: str) -> str:
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.strip() == _BEGIN:
            inside = True
        elif line.strip() == _END and inside:
            inside = False
        elif not inside:
            kept.append(line)
    return "".join(kept)


def _parsed(path: Path, text: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CliError(f"{path} is not TOML: {error}. It was left as it is.") from error


def _refuse_conflicts(
    path: Path, found: Mapping[str, object], keys: Mapping[str, str], tables: Mapping[str, Mapping[str, str]]
) -> None:
    for name in (*keys, *tables):
        inner: object = found
        for part in name.split("."):
            inner = inner.get(part) if isinstance(inner, Mapping) else None  # pyright: ignore
        if inner is not None:
            raise CliError(f"{path} sets {name} already. Remove it first.")
