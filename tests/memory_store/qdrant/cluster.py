"""The Qdrant that a check runs on: nodes named by ``QDRANT_NODES``, or a stand-in of three.

Checks delete every collection of ours there.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from memory_store.vectors.filters import AllOf
from memory_store.vectors.qdrant_server import QdrantServer, ServerCollection, ServerCollections
from memory_store.vectors.schema import is_ours
from memory_store.vectors.server_at import AnyNode
from memory_store.vectors.server_layout import Layout
from memory_store.vectors.server_setup import ONE_NODE, ShardConfig
from tests.fakes.qdrant_cluster import QdrantCluster
from tests.fakes.qdrant_grpc import serving_points
from tests.memory_store.qdrant.faults import CommandFaults, Faults, StandInFaults

_NODES = tuple(filter(None, os.environ.get("QDRANT_NODES", "").split(",")))
_TIMEOUT_S = 60
_WHOLE_S = 300.0
_LOOK_S = 0.1
_EVERYTHING = AllOf(())


@dataclass(frozen=True)
class Cluster:
    """The nodes' addresses, the port of gRPC at each, and what can be done to them.

    ``late_s``: how long a store waits for a node. ``fault_s``: how long a fault lasts.
    """

    urls: tuple[str, ...]
    grpc_port: int
    faults: Faults
    late_s: int
    fault_s: float

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

    def vectors(self, sharding: ShardConfig = ONE_NODE, *, node: int = 0, grpc: bool = False) -> QdrantServer:
        """The store's adapter on one node."""
        return QdrantServer(self.client(node), sharding, points=self.client(node, grpc=True) if grpc else None)

    def vectors_anywhere(self, sharding: ShardConfig, *, first: int = 0) -> QdrantServer:
        """The store's adapter on every node, as with several addresses in ``QDRANT_URL``."""
        at = first % len(self.urls)
        urls = [*self.urls[at:], *self.urls[:at]]
        client = AsyncQdrantClient(
            url=urls[0],
            transport=AnyNode(urls),
            api_key=os.environ.get("QDRANT_API_KEY"),
            timeout=self.late_s,
            check_compatibility=False,
        )
        return QdrantServer(client, sharding)

    async def in_service(self, node: int = 0) -> ServerCollection:
        """The collection that the alias names, asked on every shard."""
        client = self.client(node)
        aliases = (await client.get_aliases()).aliases
        return ServerCollection(client, next(one.collection_name for one in aliases), Layout())

    async def whole(self) -> None:
        """Wait until every node answers and counts every copy as live."""
        async with asyncio.timeout(_WHOLE_S):
            for node in range(len(self.urls)):
                client = self.client(node)
                while not await _is_whole(client):  # noqa: ASYNC110 - no node signals
                    await asyncio.sleep(_LOOK_S)
                await client.close()

    async def alike(self) -> None:
        """Wait until all copies of the collection in service agree, whichever node is asked."""
        async with asyncio.timeout(_WHOLE_S):
            while not await self._are_alike():  # noqa: ASYNC110 - no node signals
                await asyncio.sleep(_LOOK_S)

    async def _are_alike(self) -> bool:
        found: list[dict[str, object]] = []
        for node in range(len(self.urls)):
            collection = await self.in_service(node)
            client = self.client(node)
            for consistency in (None, models.ReadConsistencyType.ALL):
                records, _ = await client.scroll(collection.name, limit=100_000, consistency=consistency)
                found.append({str(record.id): record.payload for record in records})
            await client.close()
        return all(one == found[0] for one in found)

    async def clear(self) -> None:
        """Drop every collection of ours."""
        collections = ServerCollections(self.client())
        for name in await collections.names():
            await collections.drop(name)
        await collections.close()


async def _is_whole(client: AsyncQdrantClient) -> bool:
    with suppress(ResponseHandlingException, UnexpectedResponse):
        ours = [one for one in (await client.get_collections()).collections if is_ours(one.name)]
        for one in ours:
            info = await client.http.distributed_api.collection_cluster_info(one.name)
            if info.result is None or info.result.shard_transfers:
                return False
            shards = [*info.result.local_shards, *info.result.remote_shards]
            if any(shard.state != models.ReplicaState.ACTIVE for shard in shards):
                return False
        return True
    return False


@asynccontextmanager
async def empty_cluster() -> AsyncGenerator[Cluster]:
    """The nodes without collections of ours, before and after."""
    if _NODES:
        port = int(os.environ.get("QDRANT_GRPC_PORT", "6334"))
        cluster = Cluster(_NODES, port, CommandFaults(), late_s=10, fault_s=8)
        await cluster.clear()
        yield cluster
        await cluster.clear()
        return
    server = QdrantCluster(nodes=3)
    async with server.running_nodes() as urls, serving_points(server.collections) as port:
        yield Cluster(urls, port, StandInFaults(server), late_s=2, fault_s=1)
