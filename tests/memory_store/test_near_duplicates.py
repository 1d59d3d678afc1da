"""The optional rule that a memory under another key can be the same statement."""

from collections.abc import AsyncIterator

import pytest

from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import StoreApi
from tests.memory_store.conftest import app_over, serving


@pytest.fixture
async def strict(settings: Settings) -> AsyncIterator[StoreApi]:
    """A store with the rule on."""
    mine = settings.model_copy(update={"near_duplicate_similarity": 0.8})
    async with serving(app_over(QdrantEdge(mine.data_dir, flush_s=60), mine)) as http:
        yield StoreApi(http)


async def test_a_near_duplicate_under_another_key_is_touched(strict: StoreApi) -> None:
    first = await strict.add("pet", "Tom has two lovely grey cats at home")

    again = await strict.add("pets", "Tom has two lovely grey cats at home")

    assert (again.outcome, again.item.id) == ("touched", first.item.id)


@pytest.mark.parametrize("other", ["Tom has 3 lovely grey cats at home", "Tom has no 2 lovely grey cats at home"])
async def test_another_number_or_a_negation_is_another_fact(strict: StoreApi, other: str) -> None:
    await strict.add("pet", "Tom has 2 lovely grey cats at home")

    assert (await strict.add("pets", other)).outcome == "inserted"


async def test_a_near_duplicate_in_another_namespace_is_not_seen(strict: StoreApi) -> None:
    await strict.add("pet", "Tom has two lovely grey cats at home")

    assert (await strict.of(agent_id="a").add("pets", "Tom has two lovely grey cats at home")).outcome == "inserted"


async def test_the_rule_is_off_by_default(store: StoreApi) -> None:
    await store.add("pet", "Tom has two lovely grey cats at home")

    assert (await store.add("pets", "Tom has two lovely grey cats at home")).outcome == "inserted"
