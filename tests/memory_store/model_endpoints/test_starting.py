"""The start of a store whose embedding model is behind an endpoint."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from memory_store.embedding.endpoint_embedder import EmbeddingEndpointAway
from memory_store.settings import Settings
from memory_store.vectors.schema import EmbeddingMismatch
from tests.fakes.model_endpoint import ModelEndpoint
from tests.memory_store.model_endpoints.stores import searched, store_on, texts


async def test_a_store_refuses_to_start_on_another_dimension_and_names_the_way_out(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    endpoint.dimension = 48
    with pytest.raises(EmbeddingMismatch, match=r"48 dimensions.*MEMLOOP_EMBEDDING_DIMENSION is 64.*reembed"):
        async with store_on(settings_with(embedding_dimension=64)):
            pass


async def test_a_store_refuses_to_start_when_the_stored_vectors_have_another_dimension(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        await store.add("drink", "green tea")
    endpoint.dimension = 48
    with pytest.raises(EmbeddingMismatch, match=r"MEMLOOP_EMBEDDING_MODEL.*reembed"):
        async with store_on(settings_with()):
            pass


async def test_a_store_starts_without_its_endpoint_if_it_knows_the_dimension(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    settings = settings_with(embedding_dimension=64, embedding_timeout_s=5.0)
    async with store_on(settings) as store:
        await store.add("drink", "green tea")
    endpoint.status = 503
    async with store_on(settings) as store:
        by_words = await searched(store, "Which tea?")

    assert (texts(by_words)[0], by_words.degraded) == ("green tea", True)


async def test_a_store_that_does_not_know_the_dimension_needs_its_endpoint_to_start(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    endpoint.status = 503
    with pytest.raises(EmbeddingEndpointAway, match="MEMLOOP_EMBEDDING_DIMENSION"):
        async with store_on(settings_with(embedding_timeout_s=5.0)):
            pass


async def test_a_wrong_key_stops_the_start_with_the_settings_to_check(settings_with: Callable[..., Settings]) -> None:
    with pytest.raises(EmbeddingEndpointAway, match=r"401.*MEMLOOP_EMBEDDING_API_KEY"):
        async with store_on(settings_with(embedding_api_key="wrong")):
            pass


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"embedding_model": "endpoint:m"}, "MEMLOOP_EMBEDDING_URL"),
        ({"rerank_model": "endpoint:m"}, "MEMLOOP_RERANK_URL"),
        ({"rerank_url": "http://models/v1", "rerank_model": "local"}, "MEMLOOP_RERANK_MODEL"),
        ({"embedding_shorten": True}, "MEMLOOP_EMBEDDING_DIMENSION"),
    ],
)
def test_half_an_endpoint_is_refused_with_the_missing_setting(fields: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Settings.model_validate(fields)
