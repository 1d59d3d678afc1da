"""The one filter language of the store: frozen conditions that each vector adapter translates into its own.

``parse_filters`` reads the public form (``{"AND": [{"tags": "travel"}, {"created_at": {"gte": "2026-01-01"}}]}``);
the store's own conditions (tenant, status, validity) are built from the same pieces.
"""

import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias, cast

from pydantic import JsonValue

from memloop.wire.errors import Unprocessable
from memloop.wire.fields import INVALID_NAME, check_moment

_MAX_DEPTH = 8
_MAX_CONDITIONS = 200
_MAX_EXACT_FLOAT = 2**53
_FIELD = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){0,8}")
_TEXT_FIELDS = ("id", "key", "memory", "memory_type", "tags", "user_id", "agent_id", "run_id", "supersedes", "hash")
_NAMES = frozenset(("user_id", "agent_id", "run_id"))
_LOST = "\ufffd"
_TIME_FIELDS = ("valid_from", "valid_to", "created_at", "updated_at", "expires_at")
_ITEM_FIELDS = frozenset((*_TEXT_FIELDS, *_TIME_FIELDS, "version", "status"))
_NOT_TEXT = frozenset(("id", *_TIME_FIELDS))
"""Fields whose values are more than their spelling."""


@dataclass(frozen=True, slots=True)
class Equals:
    """The field, or one element of it if it is a list, is this value."""

    field: str
    value: str | int


@dataclass(frozen=True, slots=True)
class OneOf:
    """The field, or one element of it, is one of these texts."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The field is a number within all the bounds that are set."""

    field: str
    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The field is an RFC 3339 time within all the bounds that are set."""

    field: str
    gt: datetime | None = None
    gte: datetime | None = None
    lt: datetime | None = None
    lte: datetime | None = None


@dataclass(frozen=True, slots=True)
class Contains:
    """The field, or one element of it, has this text in it; case counts."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    """The field is not there, or null, or an empty list."""

    field: str


@dataclass(frozen=True, slots=True)
class Ids:
    """The point has one of these ids."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every condition holds; an empty one always does."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one condition holds; never empty."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold; a missing field counts as not holding it."""

    condition: "Condition"


Condition: TypeAlias = Equals | OneOf | NumberRange | TimeRange | Contains | Missing | Ids | AllOf | AnyOf | Not


def parse_filters(filters: Mapping[str, JsonValue]) -> Condition:
    """The condition that the public filter form means.

    Fields are the item's own or those of its metadata (with or without ``metadata.`` before the name). Raises
    ``Unprocessable`` with ``param="filters"`` and the reason.
    """
    return _Parser().group(dict(filters), depth=1)


class _Parser:
    """Reads one filter; counts conditions so that no request can make the store evaluate thousands."""

    def __init__(self) -> None:
        self._conditions = 0
        self._groups_read = 0

    def group(self, filters: JsonValue, *, depth: int) -> Condition:
        if not isinstance(filters, dict):
            raise _refused("a filter is an object of field names and the words AND, OR, NOT")
        self._groups_read += 1
        if depth > _MAX_DEPTH or self._groups_read > _MAX_CONDITIONS:
            raise _refused(f"a filter has at most {_MAX_DEPTH} levels and {_MAX_CONDITIONS} objects")
        parts = tuple(self._entry(name, value, depth=depth) for name, value in filters.items())
        return parts[0] if len(parts) == 1 else AllOf(parts)

    def _entry(self, name: str, value: JsonValue, *, depth: int) -> Condition:
        match name:
            case "AND":
                return AllOf(self._groups(name, value, depth=depth))
            case "OR":
                return AnyOf(self._groups(name, value, depth=depth))
            case "NOT":
                negated: list[JsonValue] = [*value] if isinstance(value, list) else [value]
                return Not(AnyOf(self._groups(name, negated, depth=depth)))
            case "metadata" if isinstance(value, dict):
                return AllOf(tuple(self._field(f"metadata.{key}", inner) for key, inner in value.items()))
            case _:
                return self._field(name, value)

    def _groups(self, name: str, value: JsonValue, *, depth: int) -> tuple[Condition, ...]:
        if not isinstance(value, list) or not value:
            raise _refused(f"{name} takes a list of at least one filter")
        return tuple(self.group(inner, depth=depth + 1) for inner in value)

    def _field(self, name: str, value: JsonValue) -> Condition:
        if not _FIELD.fullmatch(name):
            raise _refused(f"no field can be named {name[:80]!r}")
        known = name in _ITEM_FIELDS or name.startswith("metadata.")
        field = name if known else f"metadata.{name}"
        keys = field.split(".")
        self._conditions += 2 ** max(len(keys) - 2, 0)
        if self._conditions > _MAX_CONDITIONS:
            raise _refused(f"a filter has at most {_MAX_CONDITIONS} conditions; each dot in a name doubles them")
        condition = _on_field(field, value)
        return condition if len(keys) < 3 else _in_any(condition, _places(keys))


def _on_field(field: str, value: JsonValue) -> Condition:
    if field in _NAMES and _LOST in str(value):
        message = f"filters: {field} is compared with a name that has lost a character: it has U+FFFD"
        raise Unprocessable(message, param="filters", code=INVALID_NAME)
    if isinstance(value, dict):
        if not value:
            raise _refused(f"{field} has an empty object of operators")
        return AllOf(tuple(_operator(field, name, bound) for name, bound in value.items()))
    if isinstance(value, list):
        return _one_of(field, value)
    return Not(Missing(field)) if value == "*" else _equals(field, value)


def _places(keys: Sequence[str]) -> tuple[str, ...]:
    """The places that a dotted name of metadata may mean: ``a.b`` is ``b`` inside of ``a``, or one key with a dot."""
    top, first, *others = keys
    ways = [[first]]
    for key in others:
        ways = [way for known in ways for way in ([*known, key], [*known[:-1], f"{known[-1]}.{key}"])]
    return tuple(".".join((top, *(f'"{key}"' if "." in key else key for key in way))) for way in ways)


def _in_any(condition: Condition, fields: Sequence[str]) -> Condition:
    """The condition on a field, as it is on a value at any of several places."""
    match condition:
        case AllOf(inner):
            return AllOf(tuple(_in_any(one, fields) for one in inner))
        case AnyOf(inner):
            return AnyOf(tuple(_in_any(one, fields) for one in inner))
        case Not(one):
            return Not(_in_any(one, fields))
        case Missing():
            return AllOf(tuple(Missing(field) for field in fields))
        case Ids() | Equals(field="flags"):
            return condition
        case _:
            return AnyOf(tuple(replace(condition, field=field) for field in fields))


def _refused(reason: str) -> Unprocessable:
    return Unprocessable(f"filters: {reason}", param="filters", code="invalid_filter")


def _operator(field: str, name: str, value: JsonValue) -> Condition:
    match name:
        case "eq":
            return _equals(field, value)
        case "ne":
            return Not(_equals(field, value))
        case "in":
            return _one_of(field, value)
        case "contains":
            if not isinstance(value, str) or not value:
                raise _refused(f"{field} can only contain a text")
            return Contains(field, value)
        case "gt" | "gte" | "lt" | "lte":
            return _bound(field, name, value)
        case _:
            raise _refused(f"{field} has the unknown operator {name[:80]!r}")


def _equals(field: str, value: JsonValue) -> Condition:
    match value:
        case None:
            return Missing(field)
        case _ if field in _TIME_FIELDS:
            return AllOf((_bound(field, "gte", value), _bound(field, "lte", value)))
        case bool():
            return Equals("flags", flag(field.removeprefix("metadata."), value))
        case int() if abs(value) >= _MAX_EXACT_FLOAT:
            return Equals(field, _within_64_bits(field, value))
        case int() | float():
            return NumberRange(field, gte=_finite(field, value), lte=_finite(field, value))
        case str():
            return Ids((_item_id(value),)) if field == "id" else Equals(field, value)
        case _:
            raise _refused(f"{field} can only equal a text, a number, a boolean or null")


def _within_64_bits(field: str, value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise _refused(f"{field} is compared with a number beyond 64 bits")
    return value


def _finite(field: str, value: float) -> float:
    if isinstance(value, int):
        return float(_within_64_bits(field, value))
    if not math.isfinite(value):
        raise _refused(f"{field} is compared with {value}")
    return value


_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_OF_WHOLE_DAYS: Final = {"gt": "gte", "lte": "lt"}
"""A date without a time is its whole day: after it begins with the next day, and up to it ends there."""


def _item_id(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise _refused(f"no id looks like {text[:80]!r}") from None


def _one_of(field: str, value: JsonValue) -> Condition:
    if not isinstance(value, list) or not value:
        raise _refused(f"{field} takes a list of at least one value")
    if len(value) > _MAX_CONDITIONS:
        raise _refused(f"{field} takes at most {_MAX_CONDITIONS} values")
    if field not in _NOT_TEXT and all(isinstance(one, str) for one in value):
        return OneOf(field, tuple(cast("list[str]", value)))
    return AnyOf(tuple(_equals(field, one) for one in value))


def _bound(field: str, name: str, value: JsonValue) -> Condition:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _refused(f"{field} can only be compared with a number or a time")
    if not isinstance(value, str) and field not in _TIME_FIELDS:
        return NumberRange(field, **{name: _finite(field, value)})
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
        moment = utc(check_moment(moment))
    except (ValueError, OverflowError, OSError):
        shown = f"{str(value)[:80]!r}, which is no number and no ISO time of the years 1000 to 8999"
        raise _refused(f"{field} is compared with {shown}") from None
    if isinstance(value, str) and _DAY.fullmatch(value) and name in _OF_WHOLE_DAYS:
        name, moment = _OF_WHOLE_DAYS[name], moment + timedelta(days=1)
    return TimeRange(field, **{name: moment})


def utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def all_of(conditions: Sequence[Condition | None]) -> AllOf:
    """Every condition that is given."""
    return AllOf(tuple(condition for condition in conditions if condition is not None))


@dataclass(frozen=True, slots=True)
class Clauses:
    """A condition as a filter of Qdrant's has it: all of ``must`` hold, and none of ``must_not``."""

    must: list[Condition]
    must_not: list[Condition]

    @classmethod
    def of(cls, condition: Condition) -> "Clauses":
        """With conjunctions inside of conjunctions opened: Edge takes 9 us to read a filter inside of a filter."""
        clauses, left = cls([], []), [condition]
        while left:
            match left.pop():
                case AllOf(conditions):
                    left.extend(reversed(conditions))
                case Not(Not(one)):
                    left.append(one)
                case Not(AnyOf(conditions)):
                    clauses.must_not.extend(conditions)
                case Not(one):
                    clauses.must_not.append(one)
                case one:
                    clauses.must.append(one)
        return clauses


def flag(path: str, value: bool) -> str:
    """How a boolean stands in the ``flags`` list of a payload: Qdrant Edge 0.9 matches no booleans."""
    return f"{path}={'true' if value else 'false'}"
