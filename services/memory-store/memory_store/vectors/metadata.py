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

    That is NaN, infinities, and integers beyond 64 bits.
    """
    for path, value in _leaves(metadata):
        if not _is_storable(value):
            raise Unprocessable(f"metadata.{path[:80]} cannot be stored", param="metadata", code="invalid_metadata")


def _is_storable(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or value in _INT64


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
