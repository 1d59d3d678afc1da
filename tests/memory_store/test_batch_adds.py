"""Adds of a batch, for one or for many users, through the HTTP API."""

import asyncio
from typing import Any

from memloop.wire.memory import BatchOutcome, BatchResult
from memory_store.settings import Settings
from memory_store.vectors.filters import Condition
from memory_store.vectors.port import Page
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import app_over, serving


async def _batch(store: StoreApi, *adds: dict[str, Any]) -> list[BatchOutcome]:
    body = {"adds": [{"namespace": store.namespace.model_dump(), **add} for add in adds]}
    response = await store.http.post("/v1/items/batch", json=body)
    assert response.status_code == 200, response.text
    return list(BatchResult.model_validate_json(response.content).results)


def _fact(key: str, value: str, **fields: Any) -> dict[str, Any]:
    return {"drafts": [{"key": key, "value": value}], **fields}


async def test_the_adds_of_a_batch_see_one_another_and_what_is_stored(store: StoreApi) -> None:
    await store.add("Pet", "a cat", timestamp=day(1))
    bob = store.of(user_id="bob")

    outcomes = await _batch(
        store,
        _fact("Pet", "a dog", timestamp="2026-01-02T00:00:00Z"),
        _fact("City", "Rome", timestamp="2026-01-02T00:00:00Z"),
        _fact("City", "Rome", timestamp="2026-01-02T00:00:00Z", namespace=bob.namespace.model_dump()),
        _fact("City", "Oslo", timestamp="2026-01-03T00:00:00Z"),
    )

    assert [one.memories[0].outcome for one in outcomes] == ["superseded", "inserted", "inserted", "superseded"]
    assert sorted(await store.found("city pet")) == ["Oslo", "a dog"]
    assert await bob.found("city") == ["Rome"]


async def test_a_refused_add_does_not_keep_the_rest_of_its_batch_out(store: StoreApi) -> None:
    outcomes = await _batch(store, _fact("A", "one"), _fact("B", "two", metadata={"n": 2**70}), _fact("C", "three"))

    assert [one.error.code if one.error else None for one in outcomes] == [None, "invalid_metadata", None]
    assert sorted(await store.found("what")) == ["one", "three"]


async def test_a_batch_with_a_stale_token_is_refused_only_where_it_is_stale(store: StoreApi) -> None:
    await store.add("A", "one", fencing_token=9)
    bob = store.of(user_id="bob").namespace.model_dump()

    outcomes = await _batch(
        store, _fact("A", "two", fencing_token=8), _fact("A", "three", fencing_token=8, namespace=bob)
    )

    assert [one.error.code if one.error else None for one in outcomes] == ["stale_fencing_token", None]


async def test_opposite_batches_of_the_same_users_do_not_wait_for_each_other_for_ever(store: StoreApi) -> None:
    users = [store.of(user_id=f"u{number}").namespace.model_dump() for number in range(8)]
    forth = [_fact("A", "one", namespace=user) for user in users]

    async with asyncio.timeout(60):
        await asyncio.gather(_batch(store, *forth), _batch(store, *reversed(forth)))

    assert [one.memories[0].outcome for one in await _batch(store, *forth)] == ["touched"] * 8


async def test_one_event_in_two_namespaces_of_a_batch_is_two_writes(store: StoreApi) -> None:
    bob = store.of(user_id="bob")
    adds = [_fact("A", "one", event_id="e1"), _fact("A", "one", event_id="e1", namespace=bob.namespace.model_dump())]

    first, again = await _batch(store, *adds), await _batch(store, *adds)

    assert [one.memories[0].outcome for one in first] == ["inserted", "inserted"]
    assert [one.memories[0].item.user_id for one in again] == ["alice", "bob"]
    assert [one.memories[0].item.id for one in again] == [one.memories[0].item.id for one in first]
    assert await bob.found("A") == ["one"]


class CountingReads(QdrantEdge):
    """Counts the pages that are read."""

    pages = 0

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        """Count and read."""
        self.pages += 1
        return await super().scroll(where=where, limit=limit, start_id=start_id)


async def test_what_a_batch_of_many_users_needs_is_read_in_one_query(settings: Settings) -> None:
    vectors = CountingReads(settings.data_dir, flush_s=60)
    async with serving(app_over(vectors, settings)) as http:
        store = StoreApi(http)
        users = [store.of(user_id=f"u{number}").namespace.model_dump() for number in range(30)]
        await _batch(store, *(_fact("A", "one", namespace=user) for user in users))
        before = vectors.pages

        outcomes = await _batch(store, *(_fact("A", "one", namespace=user) for user in users))

    assert [one.memories[0].outcome for one in outcomes] == ["touched"] * 30
    assert vectors.pages == before + 1
