"""Filters on the attributes of files, as OpenAI's API has them."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, FiniteFloat
from pydantic_core import PydanticCustomError

from memloop.wire.base import Wire
from memloop.wire.fields import FILTER_TOO_LARGE

AttributeValue: TypeAlias = (
    Annotated[str, Field(max_length=512)]
    | Annotated[bool, Field(strict=True)]
    | Annotated[FiniteFloat, Field(strict=True)]
)
"""Strict: a text of digits that is too long for a text is no number either."""
_ORDERS: Final = {"lt": (-1,), "lte": (-1, 0), "gt": (1,), "gte": (1, 0)}
_MOST_CONDITIONS: Final = 100
_MOST_LEVELS: Final = 8


class Comparison(Wire):
    """A condition on one attribute. A file without the attribute passes ``ne`` and ``nin`` alone."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: str = Field(max_length=64)
    value: AttributeValue | Annotated[list[AttributeValue], Field(max_length=_MOST_CONDITIONS)]


class Compound(Wire):
    """Conditions of which all or one must hold."""

    type: Literal["and", "or"]
    filters: list["Comparison | Compound"] = Field(min_length=1, max_length=_MOST_CONDITIONS)


def _bounded(found: Comparison | Compound) -> Comparison | Compound:
    levels, conditions = _size(found)
    if levels > _MOST_LEVELS or conditions > _MOST_CONDITIONS:
        raise PydanticCustomError(
            FILTER_TOO_LARGE,
            "A filter has at most {levels} levels and {conditions} conditions.",
            {"levels": _MOST_LEVELS, "conditions": _MOST_CONDITIONS},
        )
    return found


def _size(found: Comparison | Compound) -> tuple[int, int]:
    if isinstance(found, Comparison):
        return 1, 1
    sizes = [_size(inner) for inner in found.filters]
    return 1 + max(levels for levels, _ in sizes), 1 + sum(count for _, count in sizes)


Filter: TypeAlias = Annotated[Comparison | Compound, AfterValidator(_bounded)]


def passes(filters: Comparison | Compound, attributes: Mapping[str, str | bool | float]) -> bool:
    """Return whether a file with these attributes passes the filter."""
    if isinstance(filters, Compound):
        each = (passes(inner, attributes) for inner in filters.filters)
        return all(each) if filters.type == "and" else any(each)
    value = attributes.get(filters.key)
    wanted = filters.value if isinstance(filters.value, list) else [filters.value]
    match filters.type:
        case "eq" | "in":
            return any(_same(value, each) for each in wanted)
        case "ne" | "nin":
            return not any(_same(value, each) for each in wanted)
        case _:
            return len(wanted) == 1 and _order(value, wanted[0]) in _ORDERS[filters.type]


def _same(value: str | bool | float | None, other: str | bool | float) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _order(value: str | bool | float | None, other: str | bool | float) -> int | None:
    """Return the order of two numbers or two texts; None for values that have no order."""
    if isinstance(value, bool) or isinstance(other, bool):
        return None
    if isinstance(value, str) and isinstance(other, str):
        return (value > other) - (value < other)
    if isinstance(value, int | float) and isinstance(other, int | float):
        return (value > other) - (value < other)
    return None
