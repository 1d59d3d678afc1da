"""Limits of what a client sends: moments that every part can compute with, and metadata of a bounded size."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, JsonValue
from pydantic_core import PydanticCustomError

from memloop.wire.names import INVALID_NAME

EARLIEST: Final = datetime(1000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
MAX_METADATA_BYTES: Final = 65_536
MAX_METADATA_VALUES: Final = 1000
MAX_METADATA_PATH_CHARS: Final = 256
MAX_METADATA_DEPTH: Final = 8
TIME_OUT_OF_RANGE: Final = "time_out_of_range"
METADATA_TOO_LARGE: Final = "metadata_too_large"
UNPRINTABLE: Final = "unprintable_text"
CHUNK_OVERLAP_TOO_LARGE: Final = "chunk_overlap_too_large"
FILTER_TOO_LARGE: Final = "filter_too_large"
LIMIT_CODES: Final = frozenset(
    {TIME_OUT_OF_RANGE, METADATA_TOO_LARGE, UNPRINTABLE, CHUNK_OVERLAP_TOO_LARGE, FILTER_TOO_LARGE, INVALID_NAME}
)
"""Codes of values that a JSON schema cannot bound."""
STORE_BODY_BYTES: Final = 32 * 1024 * 1024
"""The largest body that every memory store takes."""
MAX_WRITE_BYTES: Final = STORE_BODY_BYTES - 2 * 1024 * 1024
"""The most that a queued write may take as JSON. A body to the store has its texts and metadata once, and beside them
at most 100 names of memories and one text a second time."""
_Container: TypeAlias = tuple[str, dict[str, JsonValue] | list[JsonValue], int]
"""A path, what lies there, and its depth."""


def check_moment(moment: datetime) -> datetime:
    """Returns the moment. Raises ``ValueError`` outside the years 1000 to 8999; without a zone it counts as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not EARLIEST <= aware < LATEST:
        raise PydanticCustomError(TIME_OUT_OF_RANGE, "The time must be in the years 1000 to 8999.")
    return moment


def check_metadata(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Returns the metadata. Raises ``ValueError`` when it is too large, too deep, or has too many or too long keys."""
    values = size = 0
    pending: list[_Container] = [("", metadata, 1)]
    while pending:
        path, container, depth = pending.pop()
        values += len(container)
        _check(depth, MAX_METADATA_DEPTH, "levels")
        _check(values, MAX_METADATA_VALUES, "values")
        for inner_path, value in _entries(path, container):
            _check(len(inner_path), MAX_METADATA_PATH_CHARS, "characters in a key and the keys above it")
            size += _bytes(inner_path) + _bytes(value)
            if isinstance(value, dict | list):
                pending.append((inner_path, value, depth + 1))
        _check(size, MAX_METADATA_BYTES, "bytes, with the keys above each value")
    return metadata


def _check(found: int, most: int, unit: str) -> None:
    if found > most:
        raise PydanticCustomError(
            METADATA_TOO_LARGE, "Metadata has at most {most} {unit}.", {"most": most, "unit": unit}
        )


def _entries(path: str, container: dict[str, JsonValue] | list[JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Yields each value with its dotted path; elements of a list share the list's path."""
    if isinstance(container, list):
        return ((path, value) for value in container)
    return ((f"{path}.{name}" if path else name, value) for name, value in container.items())


def _bytes(value: JsonValue) -> int:
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 8


Moment: TypeAlias = Annotated[datetime, AfterValidator(check_moment)]
"""A time that a client gives: RFC 3339, of the years 1000 to 8999."""
Metadata: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(check_metadata)]
"""A client's own fields, bounded in bytes, values, depth and length of keys."""
