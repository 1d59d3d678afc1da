"""The nodes of a Qdrant server, and which shards of a collection they hold."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException
from qdrant_client.http.models import (
    ClusterStatusOneOf1,
    CollectionClusterInfo,
    LocalShardInfo,
    ReplicaState,
)

from memloop.wire.errors import Unavailable
from memory_store.backup.manifest import TIMEOUT_S

_PORT = 6333


class Qdrant(BaseSettings):
    """Where the vectors are. ``qdrant_nodes``: the nodes' URLs, if they do not follow from the cluster's own list."""

    model_config = SettingsConfigDict(
        env_prefix="MEMLOOP_", frozen=True, extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    qdrant_url: str | None = Field(default=None, validation_alias=AliasChoices("QDRANT_URL"))
    qdrant_api_key: SecretStr | None = Field(default=None, validation_alias=AliasChoices("QDRANT_API_KEY"))
    qdrant_nodes: str = Field(default="", validation_alias=AliasChoices("QDRANT_NODES"))

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request."""
        return {"api-key": self.qdrant_api_key.get_secret_value()} if self.qdrant_api_key else {}

    def client(self, url: str) -> AsyncQdrantClient:
        """Return a client of one node."""
        key = self.headers.get("api-key")
        return AsyncQdrantClient(url=url, api_key=key, timeout=int(TIMEOUT_S), check_compatibility=False)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster."""

    url: str
    client: AsyncQdrantClient


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a shard on a node."""

    node: Node
    shard: LocalShardInfo


@asynccontextmanager
async def cluster_of(qdrant: Qdrant) -> AsyncGenerator[Sequence[Node]]:
    """The nodes of the cluster; none of a server that is not distributed.

    The cluster's list has the addresses that nodes use among themselves: the clients' port and scheme are taken from
    ``QDRANT_URL``.
    """
    async with AsyncExitStack() as stack:
        first = qdrant.client(cast(str, qdrant.qdrant_url))
        stack.push_async_callback(first.close)
        status = (await first.http.distributed_api.cluster_status()).result
        urls: Sequence[str] = _urls(qdrant, status) if isinstance(status, ClusterStatusOneOf1) else ()
        nodes = [Node(url, qdrant.client(url)) for url in urls]
        for node in nodes:
            stack.push_async_callback(node.client.close)
        yield nodes


def _urls(qdrant: Qdrant, status: ClusterStatusOneOf1) -> Sequence[str]:
    if qdrant.qdrant_nodes:
        return [url.strip().rstrip("/") for url in qdrant.qdrant_nodes.split(",")]
    base = urlsplit(cast(str, qdrant.qdrant_url))
    hosts = [cast(str, urlsplit(peer.uri).hostname) for peer in status.peers.values()]
    return [f"{base.scheme}://{f'[{host}]' if ':' in host else host}:{base.port or _PORT}" for host in hosts]


async def active_copies(nodes: Sequence[Node], collection: str) -> Mapping[int, Sequence[Copy]]:
    """Return the active copies of each shard by its number. Raises Unavailable when a shard has none that answers."""
    found: defaultdict[int, list[Copy]] = defaultdict(list)
    numbers: set[int] = set()
    for node in nodes:
        info = await _info(node, collection)
        if info is None:
            continue
        numbers |= {shard.shard_id for shard in (*info.local_shards, *info.remote_shards)}
        for shard in info.local_shards:
            if shard.state == ReplicaState.ACTIVE:
                found[shard.shard_id].append(Copy(node, shard))
    if missing := sorted(numbers - set(found)):
        asked = ", ".join(node.url for node in nodes)
        raise Unavailable(f"No active copy of shard {missing[0]} of {collection} answers. Asked were {asked}.")
    return dict(sorted(found.items()))


async def _info(node: Node, collection: str) -> CollectionClusterInfo | None:
    """The node's view of the collection, None when it does not answer."""
    try:
        return (await node.client.http.distributed_api.collection_cluster_info(collection)).result
    except ResponseHandlingException:
        return None
