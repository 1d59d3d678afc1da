"""Backs up a Qdrant cluster shard by shard, and puts it back into a cluster of any number of nodes.

Qdrant's snapshot of a collection holds the shards of the node that made it. A snapshot of a shard can be uploaded to
each node on which a new cluster has placed that shard.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException
from qdrant_client.http.models import (
    ClusterStatusOneOf1,
    CollectionConfig,
    CreateAlias,
    CreateAliasOperation,
    CreateCollection,
    CreateShardingKey,
    HnswConfigDiff,
    LocalShardInfo,
    OptimizersConfigDiff,
    ReplicaState,
    SnapshotPriority,
)

from memloop.wire.errors import DependencyError, InvalidRequest, Unavailable
from memory_store.backup.manifest import TIMEOUT_S, Collection, Manifest, Part, Shard, download, part_of
from memory_store.vectors.schema import is_ours

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
    def urls(self) -> Sequence[str]:
        """The nodes that ``QDRANT_URL`` names, one at least."""
        return [url.strip().rstrip("/") for url in (self.qdrant_url or "").split(",")]

    @property
    def headers(self) -> dict[str, str]:
        return {"api-key": self.qdrant_api_key.get_secret_value()} if self.qdrant_api_key else {}

    def client(self, url: str) -> AsyncQdrantClient:
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
        status = await _status(qdrant)
        urls: list[str] = []
        if isinstance(status, ClusterStatusOneOf1) and qdrant.qdrant_nodes:
            urls = [url.strip().rstrip("/") for url in qdrant.qdrant_nodes.split(",")]
        elif isinstance(status, ClusterStatusOneOf1):
            base = urlsplit(qdrant.urls[0])
            hosts = [cast(str, urlsplit(peer.uri).hostname) for peer in status.peers.values()]
            urls = [f"{base.scheme}://{f'[{host}]' if ':' in host else host}:{base.port or _PORT}" for host in hosts]
        nodes = [Node(url, qdrant.client(url)) for url in urls]
        for node in nodes:
            stack.push_async_callback(node.client.close)
        yield nodes


async def _status(qdrant: Qdrant) -> object:
    """Ask the first node that answers what it knows of its cluster. Raises ResponseHandlingException."""
    for url in qdrant.urls:
        client = qdrant.client(url)
        try:
            return (await client.http.distributed_api.cluster_status()).result
        except ResponseHandlingException:
            if url == qdrant.urls[-1]:
                raise
        finally:
            await client.close()
    return None


async def active_copies(nodes: Sequence[Node], collection: str) -> Mapping[int, Sequence[Copy]]:
    """Return the active copies of each shard by its number. Raises Unavailable when a shard has none that answers."""
    found: defaultdict[int, list[Copy]] = defaultdict(list)
    numbers: set[int] = set()
    for node in nodes:
        try:
            info = (await node.client.http.distributed_api.collection_cluster_info(collection)).result
        except ResponseHandlingException:
            continue
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


async def back_up_shards(
    folder: Path, nodes: Sequence[Node], headers: dict[str, str]
) -> tuple[list[Part], list[Collection]]:
    """Fetch a snapshot of each shard of our collections, from an active copy. Raises Unavailable."""
    client = nodes[0].client
    aliases = (await client.get_aliases()).aliases
    parts: list[Part] = []
    collections: list[Collection] = []
    for name in sorted(found.name for found in (await client.get_collections()).collections if is_ours(found.name)):
        copies = await active_copies(nodes, name)
        settings = _settings((await client.get_collection(name)).config)
        named = tuple(alias.alias_name for alias in aliases if alias.collection_name == name)
        collections.append(Collection(name, settings, named, tuple(copies)))
        parts += [await _snapshot(folder, name, of_shard, headers) for of_shard in copies.values()]
    return parts, collections


def _settings(config: CollectionConfig) -> dict[str, Any]:
    """The settings with which the collection can be made again."""
    shown = config.model_dump(mode="json", exclude_none=True)
    hnsw = {name: value for name, value in shown["hnsw_config"].items() if name in HnswConfigDiff.model_fields}
    optimizers = shown["optimizer_config"].items()
    shown |= shown["params"] | {
        "hnsw_config": hnsw,
        "optimizers_config": {name: value for name, value in optimizers if name in OptimizersConfigDiff.model_fields},
    }
    return {name: value for name, value in shown.items() if name in CreateCollection.model_fields}


async def _snapshot(folder: Path, collection: str, copies: Sequence[Copy], headers: dict[str, str]) -> Part:
    """Have the copy with the most points written to a file, and delete the snapshot on the node."""
    copy = max(copies, key=lambda copy: copy.shard.points_count)
    number, client = copy.shard.shard_id, copy.node.client
    made = await client.create_shard_snapshot(collection, number, wait=True)
    if made is None:
        raise Unavailable(f"Qdrant made no snapshot of shard {number} of {collection}.")
    target = folder / f"{collection}.shard-{number}.snapshot"
    place = f"{copy.node.url}/collections/{collection}/shards/{number}/snapshots/{made.name}"
    try:
        await asyncio.to_thread(download, place, target, headers)
    finally:
        await client.delete_shard_snapshot(collection, number, made.name, wait=True)
    return part_of(target, "qdrant", Shard(collection, number, copy.shard.shard_key, len(copies)))


async def recreate_collections(folder: Path, manifest: Manifest, nodes: Sequence[Node]) -> None:
    """Create and fill the backup's collections on the cluster. Raises InvalidRequest first if one of them exists."""
    client = nodes[0].client
    there = {found.name for found in (await client.get_collections()).collections}
    if taken := sorted(there & {collection.name for collection in manifest.collections}):
        raise InvalidRequest(f"Qdrant has a collection {taken[0]} already: delete it first.")
    for collection in manifest.collections:
        node = nodes[0]
        parts = manifest.shards_of(collection.name)
        settings = CreateCollection.model_validate(collection.settings)
        await node.client.http.collections_api.create_collection(collection.name, create_collection=settings)
        keys = dict.fromkeys(part.shard.key for part in parts.values() if part.shard and part.shard.key is not None)
        for key in keys:
            await node.client.http.distributed_api.create_shard_key(
                collection.name, create_sharding_key=CreateShardingKey(shard_key=key)
            )
        await _fill(folder, nodes, collection.name, manifest.shards_of(collection.name))
    named = [(alias, collection.name) for collection in manifest.collections for alias in collection.aliases]
    actions = [
        CreateAliasOperation(create_alias=CreateAlias(collection_name=name, alias_name=alias)) for alias, name in named
    ]
    await client.update_collection_aliases(actions)


async def _fill(folder: Path, nodes: Sequence[Node], collection: str, parts: Mapping[int, Part]) -> None:
    """Upload each shard to all nodes that hold a copy of it now. Raises DependencyError."""
    copies = await active_copies(nodes, collection)
    before = _by_key({number: cast(Shard, part.shard).key for number, part in parts.items()})
    now = _by_key({number: of_shard[0].shard.shard_key for number, of_shard in copies.items()})
    if {key: len(numbers) for key, numbers in before.items()} != {key: len(numbers) for key, numbers in now.items()}:
        raise DependencyError(f"Qdrant made other shards of {collection} than it had.")
    for key, numbers in before.items():
        for old, new in zip(numbers, now[key], strict=True):
            for copy in copies[new]:
                with (folder / parts[old].name).open("rb") as snapshot:
                    await copy.node.client.http.snapshots_api.recover_shard_from_uploaded_snapshot(
                        collection,
                        copy.shard.shard_id,
                        wait=True,
                        priority=SnapshotPriority.SNAPSHOT,
                        checksum=parts[old].sha256,
                        snapshot=snapshot,
                    )


def _by_key(keys: Mapping[int, str | int | None]) -> Mapping[str | int | None, Sequence[int]]:
    """The shards' numbers by their key, in order."""
    found: defaultdict[str | int | None, list[int]] = defaultdict(list)
    for number in sorted(keys):
        found[keys[number]].append(number)
    return found
