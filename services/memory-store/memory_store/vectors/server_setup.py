"""Makes collections on a Qdrant server: their shards, vectors and payload indexes."""

from dataclasses import dataclass

from qdrant_client import AsyncQdrantClient, models

from memory_store.vectors.schema import DENSE, PAYLOAD_INDEXES, SPARSE, CollectionSpec, IndexKind
from memory_store.vectors.server_errors import made_meanwhile


@dataclass(frozen=True, slots=True)
class Spread:
    """How a new collection lies on Qdrant's nodes: shards (None: one for each node), copies of each, copies per write.

    Points are spread over the shards by their ids; within a shard the tenant's index keeps a tenant's points together.
    """

    shards: int | None = None
    replicas: int = 1
    write_consistency: int = 1


ONE_NODE = Spread()


async def set_up(client: AsyncQdrantClient, spec: CollectionSpec, name: str, spread: Spread) -> None:
    """Find the collection or make it, and make the indexes that it lacks."""
    if not await client.collection_exists(name):
        await _create(client, spec, name, spread)
    info = await client.get_collection(name)
    spec.check_dimension(_dimension(info))
    await _make_indexes(client, name, info)


async def _create(client: AsyncQdrantClient, spec: CollectionSpec, name: str, spread: Spread) -> None:
    with made_meanwhile():
        await client.create_collection(
            name,
            vectors_config={DENSE: models.VectorParams(size=spec.dimension, distance=models.Distance.COSINE)},
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            shard_number=spread.shards,
            replication_factor=spread.replicas,
            write_consistency_factor=spread.write_consistency,
        )


async def _make_indexes(client: AsyncQdrantClient, name: str, info: models.CollectionInfo) -> None:
    for field, kind in PAYLOAD_INDEXES:
        if field not in info.payload_schema:
            with made_meanwhile():
                await client.create_payload_index(name, field, field_schema=_index(kind), wait=True)


def _index(kind: IndexKind) -> models.KeywordIndexParams | models.DatetimeIndexParams | models.IntegerIndexParams:
    if kind == "integer":
        return models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER)
    if kind == "datetime":
        return models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME)
    return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=kind == "tenant")


def _dimension(info: models.CollectionInfo) -> int | None:
    vectors = info.config.params.vectors
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    return dense.size if dense else None
