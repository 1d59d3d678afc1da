"""A whole store in one process: real Redis, real Qdrant Edge, an encoder without a model, HTTP over ASGI."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from memloop_service import new_registry
from memloop_state.connecting import connect
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.items.documents import Clock, now
from memory_store.main import Adapters, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.embedder import HashingEncoder
from tests.fakes.given_settings import given_settings
from tests.memory_store.api import StoreApi
from tests.memory_store.qdrant.cluster import empty_cluster

MODEL = "hashing"


@pytest.fixture
def edge_folder(tmp_path: Path) -> Path:
    """A folder for one test's memories, which is not there yet."""
    return tmp_path / "edge"


def app_over(vectors: LiveCollection, settings: Settings, *, clock: Clock = now) -> FastAPI:
    """The store's app with the hashing encoder."""
    registry = new_registry()
    metrics = Metrics(registry)
    embedder = BatchingEmbedder(HashingEncoder, metrics=metrics)
    return build(settings, Adapters(vectors, embedder, connect(settings.redis_url)), registry, metrics, clock=clock)


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient]:
    """The app opened, and a client on it."""
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        json_body = {"content-type": "application/json"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=json_body) as client:
            yield client


@pytest.fixture
def settings(redis_url: str, edge_folder: Path) -> Settings:
    """Settings of a store on the test's own Redis and folder."""
    return given_settings(Settings, {"redis_url": redis_url, "data_dir": edge_folder, "embedding_model": MODEL})


@pytest.fixture
async def vectors_of_http(request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[LiveCollection]:
    """The vectors under the store over HTTP: on Edge, or on a Qdrant cluster (``--qdrant``). The store closes them."""
    if not request.config.getoption("--qdrant"):
        yield QdrantEdge(settings.data_dir, flush_s=60)
        return
    async with empty_cluster() as cluster:
        yield cluster.vectors()


@pytest.fixture
def clock() -> Clock:
    """The store's clock; a module whose tests move it has its own."""
    return now


@pytest.fixture
async def http(settings: Settings, vectors_of_http: LiveCollection, clock: Clock) -> AsyncIterator[httpx.AsyncClient]:
    """The store over HTTP."""
    async with serving(app_over(vectors_of_http, settings, clock=clock)) as client:
        yield client


@pytest.fixture
def store(http: httpx.AsyncClient) -> StoreApi:
    """The store over HTTP, in the words of the tests."""
    return StoreApi(http)
