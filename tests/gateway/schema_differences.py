"""Compares JSON with the pydantic models of a published SDK, more strictly than the SDK itself reads it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, cast

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

Object: TypeAlias = dict[str, Any]


@dataclass
class Differences:
    """The number of fields that were compared, and how often each difference was seen."""

    fields: int = 0
    unknown: Counter[str] = field(default_factory=Counter[str])
    """Fields that the SDK's model does not have."""
    nulls: Counter[str] = field(default_factory=Counter[str])
    """Nulls in fields that the SDK lets be absent: its API may never send one there."""
    wrong: Counter[str] = field(default_factory=Counter[str])
    """Bodies that the SDK's own reader takes although a value has another type, or a field is missing."""

    def compare(self, kind: Any, value: object) -> None:
        """Validate the value in pydantic's strict mode as this type of the SDK, and visit its fields."""
        try:
            parsed = _adapter(kind).validate_json(orjson.dumps(value), strict=True)
        except ValidationError as error:
            self.wrong.update(_faults(error))
        else:
            self._visit(parsed, value)

    def _visit(self, parsed: object, given: object) -> None:
        if isinstance(parsed, BaseModel) and isinstance(given, dict):
            self._fields(parsed, cast(Object, given))
        elif isinstance(parsed, list) and isinstance(given, list):
            for one, its in zip(cast(list[object], parsed), cast(list[object], given), strict=True):
                self._visit(one, its)

    def _fields(self, parsed: BaseModel, given: Object) -> None:
        fields = {info.alias or name: (name, info) for name, info in type(parsed).model_fields.items()}
        for key, value in given.items():
            place = f"{type(parsed).__name__.partition('[')[0]}.{key}"
            if key not in fields:
                self.unknown[place] += 1
                continue
            self.fields += 1
            name, info = fields[key]
            if value is None and not info.is_required():
                self.nulls[place] += 1
            self._visit(getattr(parsed, name), value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _faults(error: ValidationError) -> Iterator[str]:
    """Name the faults; in a union only those of the models whose ``type`` the value has, if there are any."""
    faults = error.errors(include_url=False, include_context=False)
    others = [fault["loc"][:-1] for fault in faults if fault["loc"][-1] == "type" and fault["type"] == "literal_error"]
    near = [fault for fault in faults if all(fault["loc"][: len(other)] != other for other in others)]
    for fault in near or faults:
        place = ".".join(str(part) for part in fault["loc"] if not isinstance(part, int))
        yield f"{error.title:.40} {place}: {fault['msg']}, not {fault['input']!r:.60}"


def left(found: Mapping[str, int], known: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Return the differences that nothing explains, and the explanations of differences that are gone."""
    return set(found) - set(known), set(known) - set(found)
