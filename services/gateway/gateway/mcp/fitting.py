"""Fits the arguments of a tool to its schema, and its result into the characters that its client takes.

Many models, and clients that fill forms, write every argument as a text (``"5"``, ``"true"``, ``'{"a": 1}'``), and
``null`` for one that they leave out. Such an argument is taken as the schema has it; nothing else is guessed.

A model reads every character of a result, and clients cut long ones off where they like: Claude Code at 25,000 tokens.
Lists come in pages; what is still too long has its texts cut, and says so.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, TypeVar, cast

import orjson
from pydantic import BaseModel, JsonValue, ValidationError

from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import Unprocessable
from memloop_service.http import json_text, strictly

_Arguments = TypeVar("_Arguments", bound=Wire)


def arguments_of(tool: type[_Arguments], given: Json) -> _Arguments:
    """Return the tool with these arguments. Raises as ``strictly`` does."""
    try:
        return tool.model_validate_json(json_text(given), strict=True)
    except ValidationError as error:
        refused = {str(fault["loc"][0]) for fault in error.errors(include_url=False) if fault["loc"]}
    meant = dict(given)
    for name in refused & given.keys() & tool.model_fields.keys():
        value = given[name]
        if value is None and not tool.model_fields[name].is_required():
            del meant[name]
        elif isinstance(value, str):
            word = value.strip()
            with suppress(orjson.JSONDecodeError):
                meant[name] = orjson.loads(word.lower() if word in {"True", "False", "None"} else word)
    return strictly(tool, json_text(meant))


MOST_CHARS: Final = 20_000
"""The default, about 5,000 tokens."""
_LEAST_CHARS: Final = 50
_NOTE: Final = "Texts or lists are cut to fit max_chars."
_ROOM_CHARS: Final = 200
"""Left for a page's own fields."""
_Entry = TypeVar("_Entry", bound=BaseModel)


def first_of(entries: Sequence[_Entry], *, most_chars: int) -> Sequence[_Entry]:
    """Return the entries that fit together; at least one, if there is any."""
    left = most_chars - _ROOM_CHARS
    for number, entry in enumerate(entries):
        left -= len(entry.model_dump_json(exclude_none=True)) + 1
        if left < 0:
            return entries[: max(1, number)]
    return entries


def place_of(cursor: str | None) -> int:
    """Return the place that a cursor of ours names. Raises Unprocessable."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise Unprocessable("cursor must be the next_cursor of an earlier result.", param="cursor")
    return int(cursor)


def fitted(result: Json, *, most_chars: int) -> str:
    """Return the result as JSON text, its texts and lists cut where it is too long."""
    text, each = _text(result), most_chars
    while len(text) > most_chars and each > _LEAST_CHARS:
        each //= 2
        text = _text({**cast(Json, _cut(result, each)), "cut": _NOTE})
    return text


def _cut(value: JsonValue, most: int) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]} … ({len(value) - most} more characters)"
    if isinstance(value, list):
        return [_cut(one, most) for one in value[: max(1, most // _LEAST_CHARS)]]
    if isinstance(value, dict):
        return {name: _cut(one, most) for name, one in value.items()}
    return value


def _text(result: Json) -> str:
    return json_text(result).decode()
