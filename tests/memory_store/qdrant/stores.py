"""Whole stores over a cluster, which can load any model called ``…-dimension``."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
from fastapi import FastAPI

from memloop_service import new_registry
from memloop_state.connecting import connect
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.main import Adapters, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.server_setup import ShardConfig
from tests.fakes.embedder import HashingEncoder
from tests.memory_store.conftest import serving
from tests.memory_store.qdrant.cluster import Cluster

MODEL = "hashing-64"


def store_app(vectors: LiveCollection, redis_url: str, *, ack_copies: int = 0) -> FastAPI:
    """One store."""
    registry = new_registry()
    metrics = Metrics(registry)

    def embedder_for(model: str) -> BatchingEmbedder:
        return BatchingEmbedder(lambda: HashingEncoder(dimension=int(model.rpartition("-")[2])), metrics=metrics)

    settings = Settings(redis_url=redis_url, embedding_model=MODEL)
    link = connect(redis_url, ack_copies=ack_copies)
    return build(settings, Adapters(vectors, embedder_for(MODEL), link, embedder_for), registry, metrics)


@asynccontextmanager
async def stores(
    cluster: Cluster, redis_url: str, sharding: ShardConfig, *, count: int
) -> AsyncGenerator[list[httpx.AsyncClient]]:
    """So many stores, which begin at a node of their own each."""
    async with AsyncExitStack() as stack:
        apps = [store_app(cluster.vectors_anywhere(sharding, first=at), redis_url) for at in range(count)]
        yield [await stack.enter_async_context(serving(app)) for app in apps]
