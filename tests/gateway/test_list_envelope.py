"""Every list of the gateway has OpenAI's envelope; the fields that the lists had before stay, marked as deprecated."""

from typing import Any

import pytest

from gateway.document import examples
from memloop.wire.memory import ItemPage, MemoryItem, SearchHit, SearchResult
from memloop.wire.memory_requests import FoundMemories, MemoryList
from tests.fakes.recall_store import memory
from tests.gateway.openapi_document import DOCUMENT

SCHEMAS: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]
OLD = {
    "search_memory": "results",
    "list_memories": "items",
    "list_events": "events",
    "list_buffers": "buffers",
    "get_history": "versions",
    "list_changes": "changes",
}


def _answer(operation: dict[str, Any]) -> dict[str, Any]:
    body = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return SCHEMAS.get(body.get("$ref", "").rpartition("/")[2], {})


ANSWERS = {
    operation["operationId"]: _answer(operation)
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}
SHOWN: dict[str, Any] = {name: example.get("response") for name, example in examples().items()}
NOT_PAGES = {"list_models", "create_embeddings"}
"""OpenAI's own lists without ``has_more``."""
LISTS = {name: answer for name, answer in ANSWERS.items() if answer and (name.startswith("list_") or name in OLD)}
"""Without those whose items have OpenAI's shapes, which the document does not repeat."""


@pytest.mark.parametrize("name", LISTS)
def test_a_list_says_what_it_is_and_whether_there_is_more(name: str) -> None:
    fields = LISTS[name].get("properties", {})
    assert {"object", "data", "has_more"} <= fields.keys()
    assert "data" in LISTS[name]["required"]


@pytest.mark.parametrize("name", [name for name in SHOWN if name.startswith("list_") or name in OLD])
def test_the_example_of_a_list_has_the_envelope(name: str) -> None:
    """Lists whose items are OpenAI's have no schema of ours: their examples have the envelope too."""
    shown = SHOWN[name]
    assert (shown["object"], type(shown["data"])) == ("list", list)
    assert name in NOT_PAGES or isinstance(shown["has_more"], bool)


def test_no_other_answer_calls_itself_a_list() -> None:
    paged = {name for name, shown in SHOWN.items() if shown and shown.get("object") == "list"}
    assert {name for name in paged - NOT_PAGES if "has_more" not in SHOWN[name]} == set()


@pytest.mark.parametrize(("name", "field"), OLD.items())
def test_the_field_of_before_is_deprecated(name: str, field: str) -> None:
    assert ANSWERS[name]["properties"][field]["deprecated"] is True


def test_a_found_memory_is_flat_and_has_its_score() -> None:
    hit = SearchHit(item=memory("mem_1", "Anna's locker code is 482."), score=0.5, score_breakdown={"cosine": 0.5})
    found = FoundMemories.of(SearchResult(results=(hit,), degraded=True))
    flat = found.model_dump(mode="json")["data"][0]
    assert flat == hit.item.model_dump(mode="json") | {"score": 0.5, "score_breakdown": {"cosine": 0.5}}
    assert found.results == (hit,)
    assert found.degraded


def test_a_page_before_the_last_has_more() -> None:
    item: MemoryItem = memory("mem_1", "Anna's locker code is 482.")
    assert MemoryList.of(ItemPage(items=(item,), next_cursor="c")).has_more
    assert not MemoryList.of(ItemPage(items=(item,))).has_more
