"""A list of a wire model ends its validation with its first faulty element, however deep it lies."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import cast

import pytest
from pydantic import ValidationError

from memloop import wire
from memloop.wire.base import FirstFault, Wire

MODELS = {
    name: model
    for module in walk_packages(wire.__path__, "memloop.wire.")
    for name, model in vars(import_module(module.name)).items()
    if isinstance(model, type) and issubclass(model, FirstFault) and model.__module__ == module.name
}


def _sequences(schema: object) -> Iterator[dict[str, object]]:
    """Those of the schema, but for any JSON value's, which has no faults."""
    if isinstance(schema, dict):
        part = cast("dict[str, object]", schema)
        if str(part.get("ref", "")).startswith("pydantic.types.JsonValue"):
            return
        if part.get("type") in ("list", "tuple", "set", "frozenset"):
            yield part
        for name, inner in part.items():
            if name not in ("default", "metadata"):
                yield from _sequences(inner)
    elif isinstance(schema, list):
        for inner in cast("list[object]", schema):
            yield from _sequences(inner)


@pytest.mark.parametrize("name", MODELS)
def test_every_sequence_of_a_wire_model_ends_at_the_first_fault(name: str) -> None:
    found = list(_sequences(MODELS[name].__pydantic_core_schema__))
    assert [part for part in found if not part.get("fail_fast")] == []


class Word(Wire):
    letters: tuple[int, ...]


class Sentence(Wire):
    words: tuple[Word, ...]
    notes: tuple[dict[str, list[int]], ...] = ()


@pytest.mark.parametrize(
    "faulty",
    [
        '{"words": [{}, {}, {}]}',
        '{"words": [{"letters": ["x", "x", "x"]}]}',
        '{"words": [], "notes": [{"a": ["x", "x", "x"]}]}',
    ],
    ids=["models", "in a model", "in plain containers"],
)
def test_one_error_is_kept_for_a_list_of_faults(faulty: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Sentence.model_validate_json(faulty)
    assert refused.value.error_count() == 1
