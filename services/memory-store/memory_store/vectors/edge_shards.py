"""Makes the shards of Qdrant Edge, and reads their configuration."""

from pathlib import Path

import qdrant_edge as edge
from pydantic import BaseModel

from memory_store.vectors.schema import DENSE, SPARSE, CollectionSpec, IndexKind


def is_made(path: Path) -> bool:
    """Returns whether the folder holds a whole shard."""
    return (path / "edge_config.json").is_file()


def created(path: Path, spec: CollectionSpec) -> edge.EdgeShard:
    """Makes an empty shard for a model's vectors."""
    path.mkdir(parents=True, exist_ok=True)
    dense = edge.EdgeVectorParams(size=spec.dimension, distance=edge.Distance.Cosine)
    sparse = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
    config = edge.EdgeConfig(
        vectors={DENSE: dense},
        sparse_vectors={SPARSE: sparse},
        payload_memory=edge.Memory.Cached,  # mapped when it is loaded: a search's first touch of a page costs 65 us
        max_search_threads=1,
    )
    return edge.EdgeShard.create(str(path), config)


class _StoredVector(BaseModel):
    size: int


class _StoredConfig(BaseModel):
    """The part of Edge's own ``edge_config.json`` that is checked at boot."""

    vectors: dict[str, _StoredVector]


def dimension_of(path: Path) -> int | None:
    """Returns the dimension of a shard's dense vectors."""
    config = _StoredConfig.model_validate_json((path / "edge_config.json").read_bytes())
    dense = config.vectors.get(DENSE)
    return dense.size if dense else None


def index_of(kind: IndexKind) -> edge.KeywordIndexParams | edge.DatetimeIndexParams | edge.IntegerIndexParams:
    """Returns the parameters of an index of that kind."""
    if kind == "datetime":
        return edge.DatetimeIndexParams()
    if kind == "integer":
        return edge.IntegerIndexParams()
    return edge.KeywordIndexParams(is_tenant=kind == "tenant")
