"""Points, payloads and queries as Qdrant Edge's classes."""

from typing import cast

import qdrant_edge as edge
from pydantic import JsonValue

from memory_store.vectors.port import NO_WORDS, Payload, Point, Query, SparseVector
from memory_store.vectors.schema import DENSE, SPARSE


def to_edge(point: Point) -> edge.Point:
    """Converts a point."""
    vectors: dict[str, edge.NamedVector] = {DENSE: list(point.dense)}
    if point.sparse:
        vectors[SPARSE] = _sparse_to_edge(point.sparse)
    return edge.Point(point.id, vectors, dict(point.payload))


def _sparse_to_edge(vector: SparseVector) -> edge.SparseVector:
    return edge.SparseVector(list(vector.indices), list(vector.values))


def from_edge(record: edge.Record) -> Point:
    """Converts a record that was read with its vectors."""
    vectors = cast("dict[str, edge.NamedVector]", record.vector)
    sparse = vectors.get(SPARSE)
    return Point(
        id=str(record.id),
        dense=tuple(cast("list[float]", vectors[DENSE])),
        sparse=_sparse_from_edge(sparse) if isinstance(sparse, edge.SparseVector) else NO_WORDS,
        payload=payload_of(record.payload),
    )


def _sparse_from_edge(vector: edge.SparseVector) -> SparseVector:
    return SparseVector(tuple(vector.indices), tuple(vector.values))


def payload_of(payload: "edge.Payload | None") -> Payload:
    """Returns the payload, empty where Edge returns none."""
    return cast("dict[str, JsonValue]", payload or {})


def to_query(query: Query) -> edge.Query:
    """Converts a dense or sparse query."""
    if isinstance(query, SparseVector):
        return edge.Query.Nearest(_sparse_to_edge(query), using=SPARSE)
    return edge.Query.Nearest(list(query), using=DENSE)
