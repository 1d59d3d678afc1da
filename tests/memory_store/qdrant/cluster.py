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
from tests.fakes.qdrant_server import QdrantStandIn

_NODES = tuple(filter(None, os.environ.get("QDRANT_NODES", "").split(",")))
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Cluster:
    """The nodes' addresses; a stand-in has one address for all."""

    urls: tuple[str, ...]

    def client(self, node: int = 0) -> AsyncQdrantClient:
        """A client of one node."""
        url = self.urls[node % len(self.urls)]
        key = os.environ.get("QDRANT_API_KEY")
        return AsyncQdrantClient(url=url, api_key=key, timeout=_TIMEOUT_S, check_compatibility=False)

    def vectors(self, spread: Spread = ONE_NODE, *, node: int = 0) -> QdrantServer:
        """The store's adapter on one node."""
        return QdrantServer(self.client(node), spread)

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
        cluster = Cluster(_NODES)
        await cluster.clear()
        yield cluster
        await cluster.clear()
        return
    async with QdrantStandIn(nodes=3).running() as url:
        yield Cluster((url,))
