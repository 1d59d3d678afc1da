"""Every vector store under the contract: Qdrant Edge, qdrant-client's local mode as the reference, and a cluster.

The cluster is a stand-in of three nodes, or the one that ``QDRANT_NODES`` names.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from memory_store.vectors.live import LiveCollection
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.qdrant_server import QdrantServer
from tests.memory_store.qdrant.cluster import empty_cluster
from tests.memory_store.vector_contract.points import EVERYTHING, SPEC

_CLUSTERS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("cluster", "cluster over gRPC")]


@pytest.fixture(params=["edge", "local", *_CLUSTERS])
async def vectors(request: pytest.FixtureRequest, quick_disk: Path) -> AsyncIterator[LiveCollection]:
    async with _place(request.param, quick_disk / "contract") as store:
        await store.open(SPEC)
        await store.delete(where=EVERYTHING)
        yield store
        await store.delete(where=EVERYTHING)
        await store.close()


@contextlib.asynccontextmanager
async def _place(kind: str, folder: Path) -> AsyncGenerator[LiveCollection]:
    if kind == "edge":
        yield QdrantEdge(folder, flush_s=60)
    elif kind == "local":
        yield QdrantServer(AsyncQdrantClient(":memory:"))
    else:
        async with empty_cluster() as cluster:
            yield cluster.vectors(grpc="gRPC" in kind)
