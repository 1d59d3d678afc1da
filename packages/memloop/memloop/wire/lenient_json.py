"""Reads JSON of any shape: a missing part is empty, never an error."""

from collections.abc import Sequence
from typing import cast

import orjson

from memloop.wire.chat import Json


def parsed_object(raw: bytes) -> Json:
    """Parse the JSON object in the bytes; empty when there is none."""
    try:
        return object_in(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return {}


def object_in(value: object) -> Json:
    """Return the value if it is an object, else an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}


def objects_in(value: object) -> Sequence[Json]:
    """Return the objects of a list; empty for any other value."""
    return [object_in(part) for part in cast(list[object], value)] if isinstance(value, list) else []
