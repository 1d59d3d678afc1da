"""The Qdrant that a check runs on: nodes named by ``QDRANT_NODES``, or a stand-in of three.

Checks delete every collection of ours there.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from qdrant_client import AsyncQdrantClient

from memory_store.vectors.qdrant_server import QdrantServer, ServerCollections
from memory_store.vectors.server_setup import ONE_NODE, Spread
from tests.fakes.qdrant_grpc import serving_points
from tests.fakes.qdrant_server import QdrantStandIn

_NODES = tuple(filter(None, os.environ.get("QDRANT_NODES", "").split(",")))
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Cluster:
    """The nodes' addresses, and the port of gRPC at each; a stand-in has one address for all."""

    urls: tuple[str, ...]
    grpc_port: int

    def client(self, node: int = 0, *, grpc: bool = False) -> AsyncQdrantClient:
        """A client of one node."""
        return AsyncQdrantClient(
            url=self.urls[node % len(self.urls)],
            grpc_port=self.grpc_port,
            prefer_grpc=grpc,
            api_key=os.environ.get("QDRANT_API_KEY"),
            timeout=_TIMEOUT_S,
            check_compatibility=False,
        )

    def vectors(self, spread: Spread = ONE_NODE, *, node: int = 0, grpc: bool = False) -> QdrantServer:
        """The store's adapter on one node."""
        return QdrantServer(self.client(node), spread, points=self.client(node, grpc=True) if grpc else None)

    async def clear(self) -> None:
        """Drop every collection of ours."""
        collections = ServerCollections(self.client())
        for name in await collections.names():
            await collections.drop(name)
        await collections.close()


@asynccontextmanager
async def empty_cluster() -> AsyncGenerator[Cluster]:
    """The nodes without collections of ours, before and after."""
    if _NODES:
        cluster = Cluster(_NODES, int(os.environ.get("QDRANT_GRPC_PORT", "6334")))
        await cluster.clear()
        yield cluster
        await cluster.clear()
        return
    server = QdrantStandIn(nodes=3)
    async with server.running() as url, serving_points(server.collections) as port:
        yield Cluster((url,), port)
