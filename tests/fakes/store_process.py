"""A memory store with an encoder that needs no model, in a process that is forked: it is there at once after a kill.

Any model's name ends in ``-`` and its dimension.
"""

import multiprocessing
import os
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

from qdrant_client import AsyncQdrantClient

from memloop_service import new_registry, run
from memloop_state.connecting import connect
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.main import Adapters, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.qdrant_server import QdrantServer
from tests.fakes.embedder import HashingEncoder

_TIMEOUT_S = 60


def forked(environment: Mapping[str, str], log: Path) -> BaseProcess:
    """A running store with these settings; what it prints is in ``log``."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_serve, args=(dict(environment), log), daemon=True)
    process.start()
    return process


def _serve(environment: Mapping[str, str], log: Path) -> None:
    with log.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.update(environment)
    settings = Settings()
    registry = new_registry()
    metrics = Metrics(registry)

    def embedder_for(model: str) -> BatchingEmbedder:
        return BatchingEmbedder(lambda: HashingEncoder(dimension=int(model.rpartition("-")[2])), metrics=metrics)

    client = AsyncQdrantClient(url=settings.qdrant_url, timeout=_TIMEOUT_S, check_compatibility=False)
    embedder = embedder_for(settings.embedding_model)
    adapters = Adapters(QdrantServer(client), embedder, connect(settings.redis_url), embedder_for)
    run(build(settings, adapters, registry, metrics), settings, drain_s=settings.drain_s)
