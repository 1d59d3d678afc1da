"""Finds the field that a body's model does not have among the model's faults."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel

from memloop.wire.errors import UnknownParameter


def unknown_field(model: type[BaseModel], faults: Sequence[Mapping[str, Any]]) -> UnknownParameter | None:
    """Return the error for the first unknown field, with the closest that its object has; None without one.

    A misspelt field that is required is a missing and an unknown one: the client learns of the second. An unknown field
    of one of several possible models counts only as the first fault: another model may have been meant.
    """
    for number, fault in enumerate(faults):
        if fault["type"] != "extra_forbidden":
            continue
        *above, name = cast(Sequence[str | int], fault["loc"])
        found = _models_at(model, above)
        if found or number == 0:
            known = [field.alias or one for each in found for one, field in each.model_fields.items()]
            return UnknownParameter(str(name), known=known, within=".".join(map(str, above)))
    return None


def _models_at(model: type[BaseModel], place: Sequence[str | int]) -> list[type[BaseModel]]:
    """Return the models of the object at the place; none where a part of the place is not a field or an index."""
    found = [model]
    for part in place:
        if isinstance(part, int):
            continue
        kinds = [
            field.annotation
            for each in found
            for name, field in each.model_fields.items()
            if part in (name, field.alias)
        ]
        found = [inner for kind in kinds for inner in _models_in(kind)]
    return found


def _models_in(kind: object) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models_in(part)
