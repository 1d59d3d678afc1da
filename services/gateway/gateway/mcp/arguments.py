"""Reads the arguments of a tool as a model writes them.

Many models, and clients that fill forms, write every argument as a text (``"5"``, ``"true"``, ``'{"a": 1}'``), and
``null`` for one that they leave out. Such an argument is taken as the schema has it; nothing else is guessed.
"""

from typing import TypeVar

import orjson
from pydantic import JsonValue, ValidationError

from memloop.wire.base import Wire
from memloop.wire.chat import Json
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
            meant[name] = _unquoted(value)
    return strictly(tool, json_text(meant))


def _unquoted(text: str) -> JsonValue:
    word = text.strip()
    try:
        return orjson.loads(word.lower() if word in {"True", "False", "None"} else word)
    except orjson.JSONDecodeError:
        return text
