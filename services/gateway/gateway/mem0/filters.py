"""Translates mem0's filters to ours: the same ``AND``, ``OR``, ``NOT`` and ``"*"``, other names for a few fields."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias

from pydantic import JsonValue

from memloop.wire.errors import NotSupported, Unprocessable
from memloop.wire.fields import check_moment

Filter: TypeAlias = dict[str, JsonValue]

ENTITIES: Final = ("user_id", "agent_id", "run_id")
_MAX_DEPTH: Final = 8
_GROUPS: Final = ("AND", "OR", "NOT")
_OURS: Final[Mapping[str, str]] = {
    "categories": "tags",
    "keywords": "memory",
    "memory_ids": "id",
    "timestamp": "valid_from",
    "created_at": "valid_from",
    "expiration_date": "expires_at",
}
_TIMES: Final = ("valid_from", "expires_at", "updated_at")
_NOT_SERVED: Final = ("app_id", "feedback", "feedback_reason")


def translated(filters: Mapping[str, JsonValue]) -> Filter:
    """Translate the filter for the store, which validates the rest.

    Raises NotSupported for unsupported fields and operators, Unprocessable for a malformed filter.
    """
    return _group(dict(filters), depth=1)


def check_names_entity(filters: Mapping[str, JsonValue]) -> None:
    """Raise Unprocessable unless the filter names a user, an agent or a run; ``"*"`` matches any."""
    if not any(name in ENTITIES for name in _names(dict(filters))):
        raise Unprocessable(
            "filters must name a user_id, an agent_id or a run_id ('*' for any of them).", param="filters"
        )


def refuse_app(app_id: object) -> None:
    """Raise NotSupported if there is an app id."""
    if app_id is not None:
        raise _app_id()


def all_of(*filters: Filter | None) -> Filter | None:
    """Combine all non-empty filters with AND."""
    given: list[JsonValue] = [one for one in filters if one]
    return {"AND": given} if given else None


def _group(filters: JsonValue, *, depth: int) -> Filter:
    if not isinstance(filters, dict) or depth > _MAX_DEPTH:
        raise Unprocessable(f"filters must be objects at most {_MAX_DEPTH} levels deep", param="filters")
    entries = [entry for name, value in filters.items() for entry in _entries(name, value, depth)]
    names = [name for name, _ in entries]
    if len(names) == len(set(names)):
        return dict(entries)
    return {"AND": [{name: value} for name, value in entries]}


def _entries(name: str, value: JsonValue, depth: int) -> Iterator[tuple[str, JsonValue]]:
    if name in _GROUPS:
        inner = value if isinstance(value, list) else [value]
        yield name, [_group(one, depth=depth + 1) for one in inner]
    elif name == "metadata" and isinstance(value, dict):
        for key, one in value.items():
            yield from _conditions(f"metadata.{key}", one)
    else:
        if name == "app_id":
            raise _app_id()
        if name in _NOT_SERVED:
            raise NotSupported(f"Filtering by {name} is not supported.", param="filters")
        yield from _conditions(_OURS.get(name, name), value)


def _conditions(field: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if not isinstance(value, dict):
        yield field, value
        return
    kept: Filter = {}
    for operator, operand in value.items():
        if operator == "nin":
            yield "NOT", [{field: {"in": operand}}]
        elif operator == "icontains":
            raise NotSupported("icontains is not supported. Use contains, which is case-sensitive.", param="filters")
        else:
            if field in _TIMES and isinstance(operand, int | float) and not isinstance(operand, bool):
                operand = moment(operand, param="filters").isoformat()  # mem0 allows seconds
            kept[operator] = operand
    if kept or not value:
        yield field, kept


def moment(seconds: float, *, param: str) -> datetime:
    """Convert Unix seconds to a time. Raises Unprocessable."""
    try:
        return check_moment(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        raise Unprocessable(f"{seconds} is not a valid time in seconds", param=param) from None


def _names(filters: JsonValue) -> Iterator[str]:
    if isinstance(filters, dict):
        for name, value in filters.items():
            yield name
            if name in _GROUPS:
                yield from _names(value)
    elif isinstance(filters, list):
        for one in filters:
            yield from _names(one)


def _app_id() -> NotSupported:
    return NotSupported("app_id is not supported. Use agent_id, run_id or metadata.", param="app_id")
