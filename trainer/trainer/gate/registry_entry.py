"""Builds a candidate's row for inference's registry (``models.toml``): its incumbent's, with other weights."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from trainer.data.json_rows import DataError

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SERVED_NAME: Final = re.compile(r"[A-Za-z0-9][\w.:/-]{0,127}")


def row_like(registry: Path, like: str, *, name: str, source: str) -> Mapping[str, Any]:
    """Return the row of the model ``like``. Raises DataError if it is missing, or ``name`` is taken or invalid."""
    try:
        rows = cast(dict[str, dict[str, Any]], tomllib.loads(registry.read_text("utf-8"))["models"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{registry} is not a model registry: {error}") from error
    if name in rows and rows[name].get("source") != source:
        raise DataError(f"{registry} has a model {name} already: give the candidate another --name")
    if not _SERVED_NAME.fullmatch(name):
        raise DataError(f"a model cannot be named {name!r}: give a --name of letters, digits and . : / _ -")
    if like not in rows:
        raise DataError(f"{registry} has no model {like}: name one with --like, of {', '.join(sorted(rows))}")
    return rows[like]


def entry(row: Mapping[str, Any], *, name: str, source: str, profile: str) -> str:
    """Format the row with the candidate's source and profile as TOML."""
    values = {"source": source, "profile": profile} | {
        key: value for key, value in row.items() if key not in {"source", "profile"}
    }
    lines = [f"{key} = {_toml(value)}" for key, value in values.items()]
    return "\n".join([f"[models.{_key(name)}]", *lines, ""])


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: object) -> str:
    """Format a string, number, boolean or table: TOML's basic strings are JSON's, except for the delete character."""
    if isinstance(value, Mapping):
        inner = (f"{_key(str(key))} = {_toml(each)}" for key, each in cast(Mapping[object, object], value).items())
        return f"{{ {', '.join(inner)} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
