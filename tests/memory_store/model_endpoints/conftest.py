"""A stand-in for an embedding and reranking endpoint, and a store on it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from memory_store.settings import Settings
from tests.fakes.model_endpoint import KEY, ModelEndpoint, model_endpoint
from tests.fakes.processes import PATIENCE_S


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelEndpoint]:
    async with model_endpoint() as running:
        yield running


@pytest.fixture
def settings_with(endpoint: ModelEndpoint, redis_url: str, edge_folder: Path) -> Callable[..., Settings]:
    """Settings of a store whose models are at the endpoint, and which waits long for them."""

    def made(**changes: object) -> Settings:
        values: dict[str, object] = {
            "redis_url": redis_url,
            "data_dir": edge_folder,
            "embedding_model": "endpoint:stand-in",
            "embedding_url": endpoint.url,
            "embedding_api_key": KEY,
            "embedding_timeout_s": PATIENCE_S,
            "embedding_query_timeout_s": PATIENCE_S,
            "rerank_timeout_s": PATIENCE_S,
        }
        return Settings.model_validate(values | changes)

    return made
