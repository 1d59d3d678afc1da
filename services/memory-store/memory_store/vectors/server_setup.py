"""Makes collections on a Qdrant server: their shards, vectors and payload indexes; and finds how they lie there now."""

import logging
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

from qdrant_client import AsyncQdrantClient, models

from memory_store.vectors.port import VectorState
from memory_store.vectors.schema import DENSE, SPARSE, CollectionSpec, IndexKind
from memory_store.vectors.server_errors import made, repeated
from memory_store.vectors.server_layout import Layout

_SHARDS_PER_NODE = 2
_PER_USER = models.HnswConfigDiff(m=0, payload_m=16)
"""A graph within each user's vectors and none over all: nothing asks for the nearest vectors of several users."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShardConfig:
    """How a new collection lies on Qdrant's nodes: shards (None: two per node), copies of each, copies per write.

    A user's points lie on one shard. A server that is not distributed has one shard, whatever ``shards`` is.
    """

    shards: int | None = None
    replicas: int = 1
    write_consistency: int = 1


ONE_NODE = ShardConfig()


async def set_up(client: AsyncQdrantClient, spec: CollectionSpec, name: str, sharding: ShardConfig) -> Layout:
    """Find the collection or make it, and make the shard keys and indexes that it lacks.

    Other stores may do the same at once. Raises ``Unavailable`` or ``DependencyError``.
    """
    if not await repeated(lambda: client.collection_exists(name)):
        await _create(client, spec, name, sharding)
    info = await repeated(lambda: client.get_collection(name))
    vectors = info.config.params.vectors
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    spec.check_dimension(dense.size if dense else None)
    layout = Layout.of(info)
    if not layout.has_owners:
        _log.warning(_OLD_LAYOUT, name, info.config.params.shard_number)
    if layout.keys:
        there = await repeated(lambda: client.list_shard_keys(name))
        for key in {*layout.keys} - {described.key for described in there.shard_keys or ()}:
            await made(partial(client.create_shard_key, name, key))
    for field, kind in layout.indexes:
        if field not in info.payload_schema:
            await made(partial(client.create_payload_index, name, field, field_schema=_index(kind), wait=True))
    return layout


_OLD_LAYOUT = (
    "collection %s was made by an earlier version, which spread a user's memories over all of its %s shard(s). Words "
    "rank by their rarity on each shard. POST /v1/admin/flush rewrites it with one shard per user"
)


async def _create(client: AsyncQdrantClient, spec: CollectionSpec, name: str, sharding: ShardConfig) -> None:
    nodes = await repeated(lambda: nodes_of(client))
    layout = Layout(shard_keys=(sharding.shards or _SHARDS_PER_NODE * nodes) if nodes else 0)
    await made(
        lambda: client.create_collection(
            name,
            vectors_config={DENSE: models.VectorParams(size=spec.dimension, distance=models.Distance.COSINE)},
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            hnsw_config=_PER_USER,
            sharding_method=models.ShardingMethod.CUSTOM if nodes else None,
            shard_number=1,
            replication_factor=sharding.replicas,
            write_consistency_factor=sharding.write_consistency,
            metadata=layout.metadata,
        )
    )


async def nodes_of(client: AsyncQdrantClient) -> int:
    """The number of nodes; 0 of a server that is not distributed, and of qdrant-client's local mode."""
    try:
        status = await client.cluster_status()
    except NotImplementedError:
        return 0
    return len(status.peers) if isinstance(status, models.ClusterStatusOneOf1) else 0


def _index(kind: IndexKind) -> models.KeywordIndexParams | models.DatetimeIndexParams | models.IntegerIndexParams:
    if kind == "integer":
        return models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER)
    if kind == "datetime":
        return models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME)
    return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=kind == "tenant")


async def state_of(client: AsyncQdrantClient, name: str, sharding: ShardConfig) -> VectorState:
    """Ask the server. Raises the client's errors."""
    info = await client.get_collection(name)
    nodes = await nodes_of(client)
    copies = await _live_copies(client, name) if nodes else [1] * (info.config.params.shard_number or 1)
    fewest, asked, warning = min(copies, default=0), sharding.replicas, None
    if fewest < asked:
        warning = f"a shard of the vectors has {fewest} of the {asked} copies of MEMLOOP_QDRANT_REPLICAS: "
        if not nodes:
            warning += "the Qdrant server is not in distributed mode"
        elif nodes < asked:
            warning += f"the cluster has {nodes} nodes"
        else:
            warning += "bring nodes back; a collection that was made with fewer gets them by POST /v1/admin/flush"
    return VectorState(
        version=(await client.info()).version,
        distributed=nodes > 0,
        nodes=nodes or 1,
        shards=len(copies),
        copies=fewest,
        copies_asked=asked,
        write_consistency=info.config.params.write_consistency_factor or 1,
        warning=warning,
    )


async def _live_copies(client: AsyncQdrantClient, name: str) -> list[int]:
    """The number of each shard's live copies, as the node that answers counts them."""
    found = await client.collection_cluster_info(name)
    counts: defaultdict[int, int] = defaultdict(int)
    for shard in (*found.local_shards, *found.remote_shards):
        counts[shard.shard_id] += shard.state == models.ReplicaState.ACTIVE
    return list(counts.values())
