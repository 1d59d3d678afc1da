"""Any filter of the public language means the same to both adapters as to a plain reading of it."""

import asyncio
import operator
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient

from memory_store.items.identity import flags_of
from memory_store.vectors.filters import parse_filters
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.schema import CollectionSpec

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

_METADATA: list[dict[str, Any]] = [
    {},
    {"city": "Rome", "n": 1, "yes": True},
    {"city": "Romeo", "n": 2.5, "yes": False, "labels": ["sea", "sun"]},
    {"city": ["Rome", "Oslo"], "n": [1, 7], "when": "2026-01-02T00:00:00Z", "a.b": ["sea", 2.5]},
    {"city": None, "n": -3, "labels": []},
    {"city": "", "n": 0, "when": "2026-03-01T10:00:00+02:00", "labels": ["a sea"]},
]
_BY_NAME = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
_FIELDS = st.sampled_from(["city", "n", "yes", "labels", "when", "nowhere", "a.b"])
_TEXTS = st.sampled_from(["Rome", "Romeo", "Oslo", "sea", "sun", ""])
_NUMBERS = st.sampled_from([-3, 0, 1, 2, 2.5, 7])
_VALUES = _TEXTS | _NUMBERS | st.booleans() | st.none()
_BOUNDS = st.sampled_from(["gt", "gte", "lt", "lte"])
_OPERATORS = st.one_of(
    _VALUES,
    st.just("*"),
    st.fixed_dictionaries({"eq": _VALUES}),
    st.fixed_dictionaries({"ne": _VALUES}),
    st.fixed_dictionaries({"in": st.lists(_VALUES, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"contains": st.sampled_from(["Rom", "sea", "s", "ome"])}),
    st.dictionaries(_BOUNDS, _NUMBERS, min_size=1, max_size=2),
)
_FILTERS = st.recursive(
    st.dictionaries(_FIELDS, _OPERATORS, min_size=1, max_size=2),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"AND": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"OR": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"NOT": st.lists(inner, min_size=1, max_size=2) | inner}),
    ),
    max_leaves=5,
)


def holds(filters: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """The filter language as its documentation has it."""
    return all(_entry(name, value, metadata) for name, value in filters.items())


def _entry(name: str, value: Any, metadata: Mapping[str, Any]) -> bool:
    match name:
        case "AND":
            return all(holds(one, metadata) for one in value)
        case "OR":
            return any(holds(one, metadata) for one in value)
        case "NOT":
            return not any(
                holds(one, metadata) for one in (cast("list[Any]", value) if isinstance(value, list) else [value])
            )
        case _:
            stored: Any = metadata.get(name)
            elements = cast("list[Any]", stored) if isinstance(stored, list) else [] if stored is None else [stored]
            operators = (
                cast("dict[str, Any]", value) if isinstance(value, dict) else {"*" if value == "*" else "eq": value}
            )
            return all(_operator(one, operators[one], elements) for one in operators)


def _operator(name: str, wanted: Any, elements: list[Any]) -> bool:
    numbers = [one for one in elements if isinstance(one, int | float) and not isinstance(one, bool)]
    match name:
        case "*":
            return bool(elements)
        case "eq":
            return not elements if wanted is None else any(_same(wanted, one) for one in elements)
        case "ne":
            return not _operator("eq", wanted, elements)
        case "in":
            return any(_operator("eq", one, elements) for one in wanted)
        case "contains":
            return any(isinstance(one, str) and wanted in one for one in elements)
        case _:
            return any(_BY_NAME[name](one, wanted) for one in numbers)


def _same(wanted: Any, stored: Any) -> bool:
    return wanted == stored and isinstance(wanted, bool) == isinstance(stored, bool)


def _point(number: int, metadata: dict[str, Any]) -> Point:
    payload: dict[str, Any] = {"n": number, "metadata": metadata, "flags": flags_of(metadata)}
    return Point(str(uuid.UUID(int=number)), (1.0, 0.0, 0.0, 0.0), NO_WORDS, payload)


def test_both_adapters_read_a_filter_as_it_is_written(edge_folder: Path) -> None:
    with asyncio.Runner() as runner:
        stores = [QdrantEdge(edge_folder, flush_s=60), QdrantServer(AsyncQdrantClient(":memory:"))]
        for store in stores:
            runner.run(store.open(CollectionSpec("filters", 4)))
            runner.run(store.upsert([_point(number, one) for number, one in enumerate(_METADATA)]))

        @settings(max_examples=150, deadline=None, suppress_health_check=(HealthCheck.too_slow,))
        @given(_FILTERS)
        def check(filters: dict[str, Any]) -> None:
            expected = [number for number, one in enumerate(_METADATA) if holds(filters, one)]
            for store in stores:
                page = runner.run(store.scroll(where=parse_filters(filters), limit=50))
                assert [found.payload["n"] for found in page.found] == expected, (type(store).__name__, repr(filters))

        check()
        for store in stores:
            runner.run(store.close())
