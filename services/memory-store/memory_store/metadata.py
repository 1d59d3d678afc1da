"""The client's own fields: what may stand in them, and how their booleans become searchable."""

import math
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from memloop.wire.errors import Unprocessable

_INT64 = range(-(2**63), 2**63)


def flag(path: str, value: bool) -> str:
    """How a boolean stands in the ``flags`` list of a payload: Qdrant Edge 0.9 matches no booleans."""
    return f"{path}={'true' if value else 'false'}"


def flags_of(metadata: Mapping[str, JsonValue]) -> list[str]:
    """The flags of all booleans, those in nested objects and in lists included."""
    return sorted({flag(path, value) for path, value in _leaves(metadata) if isinstance(value, bool)})


def check_metadata(metadata: Mapping[str, JsonValue]) -> None:
    """Raises ``Unprocessable`` for what no vector store gives back as it was.

    That is NaN and infinities, integers beyond 64 bits, and text that is not Unicode (lone surrogates).
    """
    for path, value in _leaves(metadata):
        if not (is_unicode(path) and _is_storable(value)):
            shown = path.encode("ascii", "backslashreplace").decode()[:80]
            raise Unprocessable(f"metadata.{shown} cannot be stored", param="metadata", code="invalid_metadata")


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded at all: JSON can smuggle in lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_storable(value: JsonValue) -> bool:
    match value:
        case bool() | None:
            return True
        case int():
            return value in _INT64
        case float():
            return math.isfinite(value)
        case str():
            return is_unicode(value)
        case _:
            return True


def _leaves(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Every value that is no container, by its dotted path; list elements share their list's path."""
    pending: list[tuple[str, JsonValue]] = list(metadata.items())
    while pending:
        path, value = pending.pop()
        match value:
            case dict():
                pending.extend((f"{path}.{name}", inner) for name, inner in value.items())
            case list():
                pending.extend((path, inner) for inner in value)
            case _:
                yield path, value
