"""Puts values into a JSON file of another program and takes them out again.

A receipt beside the file lists the values, so that a removal takes out those alone, if they are unchanged.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from pydantic import JsonValue

from memloop.wire.chat import Json
from memloop_cli.agents.edits import Edit, read_text
from memloop_cli.errors import CliError

Place: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What shall be in the file: values at their places, and items of lists."""

    values: Mapping[Place, object]
    items: Sequence[tuple[Place, object]] = ()


def connected(path: Path, wanted: Wanted | None) -> list[Edit]:
    """Return the edits after which the file has what is wanted, and nothing that an earlier call put there.

    None removes it. Raises CliError when a value of somebody else is at a place, or the file is not a JSON object.
    """
    receipt = path.with_name(path.name + ".memloop")
    before, noted = read_text(path), read_text(receipt)
    settings = _object(path, before)
    _take_out(settings, _object(receipt, noted))
    if wanted is not None:
        _put_in(path, settings, wanted)
    after = before if _same(before, settings) else _text(settings) if settings or wanted is not None else None
    written = _receipt_of(wanted) if wanted is not None else None
    return [Edit(path, before, after), Edit(receipt, noted, written, ours=True)]


def _same(before: str | None, settings: Json) -> bool:
    return before is not None and json.loads(before.strip() or "{}") == settings


def _object(path: Path, text: str | None) -> Json:
    try:
        found: object = json.loads(text) if text and text.strip() else {}
    except ValueError as error:
        raise CliError(f"{path} is not JSON: {error}. It was left as it is.") from error
    if not isinstance(found, dict):
        raise CliError(f"{path} holds no JSON object. It was left as it is.")
    return cast(Json, found)


def _text(settings: object) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _receipt_of(wanted: Wanted) -> str:
    values = [[list(place), value] for place, value in wanted.values.items()]
    return _text({"values": values, "items": [[list(place), item] for place, item in wanted.items]})


def _take_out(settings: Json, receipt: Json) -> None:
    for place, value in cast(Sequence[tuple[list[str], object]], receipt.get("values", ())):
        holder = _holder(settings, place)
        if holder is not None and holder.get(place[-1]) == value:
            del holder[place[-1]]
            _prune(settings, place[:-1])
    for place, item in cast(Sequence[tuple[list[str], object]], receipt.get("items", ())):
        holder = _holder(settings, place)
        held = holder.get(place[-1]) if holder is not None else None
        if isinstance(held, list) and item in held:
            held.remove(item)  # pyright: ignore[reportArgumentType]
            _prune(settings, place)


def _holder(settings: Json, place: Sequence[str]) -> Json | None:
    """Return the object that holds the place's last name."""
    inner: JsonValue = settings
    for name in place[:-1]:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else None


def _prune(settings: Json, place: Sequence[str]) -> None:
    """Delete what is empty now, from the place upwards."""
    for length in range(len(place), 0, -1):
        holder = _holder(settings, place[:length])
        if holder is None or holder.get(place[length - 1]):
            return
        holder.pop(place[length - 1], None)


def _put_in(path: Path, settings: Json, wanted: Wanted) -> None:
    for place, value in wanted.values.items():
        holder = _made(path, settings, place[:-1])
        if holder.get(place[-1], value) != value:
            raise CliError(f"{path} sets {'.'.join(place)} already. Remove it first.")
        holder[place[-1]] = cast(None, value)
    for place, item in wanted.items:
        holder = _made(path, settings, place[:-1])
        held = holder.setdefault(place[-1], [])
        if not isinstance(held, list):
            raise CliError(f"{path}: {'.'.join(place)} is not a list. It was left as it is.")
        if item not in held:
            held.append(cast(None, item))


def _made(path: Path, settings: Json, place: Sequence[str]) -> Json:
    inner = settings
    for name in place:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            raise CliError(f"{path}: {'.'.join(place)} is not an object. It was left as it is.")
    return inner
