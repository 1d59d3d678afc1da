"""Stores whose models are behind an endpoint."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from memloop.wire.memory import SearchResult, StoreSearch
from memloop_clients import Timeouts
from memloop_service import new_registry
from memory_store.main import adapters_of, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from tests.fakes.model_endpoint import KEY, ModelEndpoint
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import ALICE, StoreApi
from tests.memory_store.conftest import serving

TIMEOUTS = Timeouts(connect_s=PATIENCE_S, read_s=PATIENCE_S, total_s=PATIENCE_S)


def reranking(endpoint: ModelEndpoint) -> dict[str, object]:
    """The settings of a reranker at the endpoint."""
    return {"rerank_model": "endpoint:judge", "rerank_url": endpoint.url, "rerank_api_key": KEY}


@asynccontextmanager
async def store_on(settings: Settings, registry: CollectorRegistry | None = None) -> AsyncGenerator[StoreApi]:
    registry = registry or new_registry()
    metrics = Metrics(registry)
    async with serving(build(settings, adapters_of(settings, metrics), registry, metrics)) as http:
        yield StoreApi(http)


async def searched(store: StoreApi, query: str, **fields: object) -> SearchResult:
    """A search's whole answer."""
    asked = StoreSearch.model_validate({"namespace": ALICE, "query": query, **fields})
    response = await store.http.post("/v1/items/search", content=asked.model_dump_json())
    assert response.status_code == 200, response.text
    return SearchResult.model_validate_json(response.content)


def texts(found: SearchResult) -> list[str]:
    return [hit.item.memory for hit in found.results]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
