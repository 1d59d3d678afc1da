"""Texts are compared by the embedding model in service; nothing of them is stored."""

import pytest

from memloop.wire.store_requests import MOST_CHARS, MOST_PASSAGES, MOST_STATEMENTS
from tests.memory_store.api import StoreApi

PATH = "/v1/similarities"


async def test_each_statement_is_compared_with_its_own_passages(store: StoreApi) -> None:
    asked = [
        {"statement": "two grey cats", "passages": ["two grey cats", "wholly different words"]},
        {"statement": "a red door", "passages": ["a red door"]},
    ]
    answer = await store.http.post(PATH, json={"comparisons": asked})
    [[same, other], [also]] = answer.json()["similarities"]
    assert same == pytest.approx(1.0) == also
    assert other < same


@pytest.mark.parametrize(
    "comparisons",
    [
        pytest.param([], id="none"),
        pytest.param([{"statement": "a", "passages": ["b"]}] * (MOST_STATEMENTS + 1), id="statements"),
        pytest.param([{"statement": "a", "passages": ["b"] * (MOST_PASSAGES + 1)}], id="passages"),
        pytest.param([{"statement": "a" * (MOST_CHARS + 1), "passages": ["b"]}], id="length"),
    ],
)
async def test_too_much_to_compare_is_refused(store: StoreApi, comparisons: list[object]) -> None:
    answer = await store.http.post(PATH, json={"comparisons": comparisons})
    assert answer.status_code == 422
