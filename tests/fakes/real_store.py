"""The real memory store on a real port: Qdrant Edge in a folder, an encoder without a model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from memloop_service import new_registry
from memloop_state.connecting import connect
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.main import Adapters, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.asgi_server import running
from tests.fakes.embedder import HashingEncoder
from tests.fakes.given_settings import given_settings


@asynccontextmanager
async def real_store(redis_url: str, folder: Path) -> AsyncGenerator[str]:
    """The base URL of a running, empty store."""
    registry = new_registry()
    metrics = Metrics(registry)
    values = {"redis_url": redis_url, "data_dir": folder, "embedding_model": "hashing"}
    settings = given_settings(Settings, values)
    embedder = BatchingEmbedder(HashingEncoder, metrics=metrics)
    adapters = Adapters(QdrantEdge(folder, flush_s=60), embedder, connect(redis_url))
    async with running(build(settings, adapters, registry, metrics)) as url:
        yield url
