"""Makes the adapter of a Qdrant server. Only a store with such a server imports its client, which is large."""

from collections.abc import Sequence
from dataclasses import dataclass

from qdrant_client import AsyncQdrantClient

from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.server_clients import RenewedClient
from memory_store.vectors.server_nodes import AnyNode
from memory_store.vectors.server_setup import ShardConfig

_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Address:
    """The nodes of a server, its key, and the port of gRPC; None: everything goes over REST."""

    urls: Sequence[str]
    api_key: str | None
    grpc_port: int | None


def server_at(address: Address, sharding: ShardConfig) -> QdrantServer:
    """Return the adapter, which is not opened yet."""
    points = RenewedClient(lambda: _client(address, address.grpc_port))
    return QdrantServer(_client(address), sharding, points=points)


def _client(address: Address, grpc_port: int | None = None) -> AsyncQdrantClient:
    return AsyncQdrantClient(
        url=address.urls[0],
        transport=AnyNode(address.urls) if len(address.urls) > 1 else None,
        grpc_port=grpc_port or 0,
        prefer_grpc=grpc_port is not None,
        api_key=address.api_key,
        timeout=_TIMEOUT_S,
        check_compatibility=False,
    )
