"""A reranking model behind real HTTP that errs, stalls, answers out of order or short."""

from collections.abc import Callable
from typing import Any

import pytest

from memloop.wire.errors import DependencyError
from memloop_clients.model_endpoint import RerankClient
from memory_store.settings import Settings
from tests.fakes.model_endpoint import KEY, ModelEndpoint
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import StoreApi
from tests.memory_store.model_endpoints.stores import TIMEOUTS, reranking, searched, store_on, texts


async def three(store: StoreApi) -> None:
    for key, value in (("a", "tea tea tea"), ("b", "tea tea and milk"), ("c", "tea and a long list of yes yes")):
        await store.add(key, value)


async def test_the_order_of_the_endpoint_is_fused_with_the_own_one(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        await three(store)
        own = await searched(store, "tea")
    async with store_on(settings_with(**reranking(endpoint))) as store:
        fused = await searched(store, "tea", explain=True)

    first, second, third = texts(own)
    assert third == "tea and a long list of yes yes"
    assert texts(fused) == [first, third, second]
    assert [hit.score for hit in fused.results] == pytest.approx([hit.score for hit in own.results])
    assert fused.results[1].score_breakdown["rerank_score"] == 2
    assert (endpoint.ranked[0]["model"], endpoint.ranked[0]["query"]) == ("judge", "tea")


async def test_scores_that_come_out_of_order_and_short_count_as_far_as_they_go(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with(**reranking(endpoint))) as store:
        await three(store)
        await searched(store, "tea")
        endpoint.backwards, endpoint.missing = True, 2  # the question's vector is kept
        found = await searched(store, "tea", explain=True)

    assert texts(found)[0] == "tea and a long list of yes yes"
    assert ["rerank_score" in hit.score_breakdown for hit in found.results] == [True, False, False]


async def test_at_most_so_many_candidates_are_judged(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with(**reranking(endpoint), rerank_candidates=2)) as store:
        await three(store)
        found = await searched(store, "tea")

    assert len(endpoint.ranked[0]["documents"]) == 2
    assert len(found.results) == 3


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 400}, {"stalls": True}], ids=str)
async def test_a_search_keeps_its_order_while_the_reranking_endpoint_fails(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings], fault: dict[str, Any]
) -> None:
    async with store_on(settings_with()) as store:
        await three(store)
        own = await searched(store, "tea")
    async with store_on(settings_with(**reranking(endpoint), rerank_timeout_s=0.5)) as store:
        endpoint.well = "/v1/embeddings"
        for name, value in fault.items():
            setattr(endpoint, name, value)
        found = await searched(store, "tea")
        endpoint.stalls = False

    assert (texts(found), found.degraded) == (texts(own), True)


async def test_a_ranking_of_texts_that_were_not_sent_is_refused(endpoint: ModelEndpoint) -> None:
    client = RerankClient(endpoint.url, model="m", api_key=KEY, timeouts=TIMEOUTS)
    endpoint.backwards = True

    assert await client.scores("tea", ["yes", "no"], within_s=PATIENCE_S) == {0: 1.0, 1: 0.0}
    endpoint.extra = True
    with pytest.raises(DependencyError, match="not asked about"):
        await client.scores("tea", ["yes", "no"], within_s=PATIENCE_S)
