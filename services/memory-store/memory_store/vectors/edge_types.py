"""Turns points, payloads, queries and conditions into Qdrant Edge's classes and back, and makes its shards."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final, cast
from uuid import UUID

import qdrant_edge as edge
from pydantic import BaseModel

from memory_store.vectors import filters as f
from memory_store.vectors.port import Payload, Placed, Point, Query, Ranked, SparseVector
from memory_store.vectors.schema import DENSE, SPARSE, CollectionSpec, IndexKind

_MOST_MET: Final = 32_768


def to_edge(point: Point) -> edge.Point:
    vectors: dict[str, edge.NamedVector] = {DENSE: list(point.dense)}
    if point.sparse.indices:
        vectors[SPARSE] = _sparse_to_edge(point.sparse)
    return edge.Point(point.id, vectors, dict(point.payload))


def _sparse_to_edge(vector: SparseVector) -> edge.SparseVector:
    return edge.SparseVector(list(vector.indices), list(vector.values))


def from_edge(record: edge.Record) -> Point:
    """Converts a record that was read with its vectors."""
    return Point.of(record.id, record.vector, record.payload)


def payload_of(payload: "edge.Payload | None") -> Payload:
    return cast("Payload", payload or {})


class KnownPoints:
    """The id as text and the ``place`` of points that were met lately: a search meets each of its points several times.

    At most 65,536 points, and at least half as many. A place is None where it is not known.
    """

    def __init__(self) -> None:
        self._met = dict[int, tuple[str, int | None]]()
        self._before = dict[int, tuple[str, int | None]]()

    def of(self, point_id: UUID | int | str) -> tuple[str, int | None]:
        """Returns the text and the place of an id as Edge gives it."""
        if not isinstance(point_id, UUID):
            return str(point_id), None
        number = point_id.int
        known = self._met.get(number)
        if known is None:
            known = self._before.get(number) or (str(point_id), None)
            self._keep(number, known)
        return known

    def text(self, point_id: UUID | int | str) -> str:
        return self.of(point_id)[0]

    def note(self, points: Iterable[Point]) -> None:
        """Notes the places of points that are stored."""
        for point in points:
            place = point.payload.get("place")
            self._keep(UUID(point.id).int, (point.id, place if isinstance(place, int) else None))

    def placed(self, record: edge.Record) -> Placed:
        """Notes and returns the place of a record that was read in the order of places."""
        point_id, place = record.id, int(record.order_value or 0)  # Edge makes a UUID each time the id is read
        text, known = self.of(point_id)
        if known != place and isinstance(point_id, UUID):
            self._keep(point_id.int, (text, place))
        return Placed(text, place)

    def ranked(self, point: edge.ScoredPoint) -> Ranked:
        """Returns a point of a ranking with its place, if that is known."""
        text, place = self.of(point.id)
        return Ranked(text, point.score, place)

    def _keep(self, number: int, known: tuple[str, int | None]) -> None:
        if len(self._met) == _MOST_MET:
            self._met, self._before = {}, self._met
        self._met[number] = known


def to_query(query: Query) -> edge.Query:
    if isinstance(query, SparseVector):
        return edge.Query.Nearest(_sparse_to_edge(query), using=SPARSE)
    return edge.Query.Nearest(list(query), using=DENSE)


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
    config = _StoredConfig.model_validate_json((path / "edge_config.json").read_bytes())
    dense = config.vectors.get(DENSE)
    return dense.size if dense else None


def index_of(kind: IndexKind) -> edge.KeywordIndexParams | edge.DatetimeIndexParams | edge.IntegerIndexParams:
    if kind == "datetime":
        return edge.DatetimeIndexParams()
    if kind == "integer":
        return edge.IntegerIndexParams()
    return edge.KeywordIndexParams(is_tenant=kind == "tenant")


def to_filter(condition: f.Condition) -> edge.Filter:
    """A filter that holds exactly when the condition holds."""
    clauses = f.Clauses.of(condition)
    return edge.Filter(
        must=[_translate(one) for one in clauses.must], must_not=[_translate(one) for one in clauses.must_not]
    )


def _translate(
    condition: f.Condition,
) -> edge.Filter | edge.HasIdCondition | edge.IsEmptyCondition | edge.FieldCondition:
    match condition:
        case f.AllOf() | f.Not():
            return to_filter(condition)
        case f.AnyOf(conditions):
            return edge.Filter(should=[_translate(one) for one in conditions])
        case f.Ids(ids):
            return edge.HasIdCondition(set(ids))
        case f.Missing(field):
            return edge.IsEmptyCondition(field)
        case f.Equals(field, value):
            return edge.FieldCondition(field, match=edge.MatchValue(value))
        case f.OneOf(field, values):
            return edge.FieldCondition(field, match=edge.MatchAny(list(values)))
        case f.Contains(field, text):
            return edge.FieldCondition(field, match=edge.MatchSubstring(text))
        case f.NumberRange(field, gt, gte, lt, lte):
            return edge.FieldCondition(field, range=edge.RangeFloat(gt=gt, gte=gte, lt=lt, lte=lte))
        case f.TimeRange(field, gt, gte, lt, lte):
            times = edge.RangeDateTime(gt=_iso(gt), gte=_iso(gte), lt=_iso(lt), lte=_iso(lte))
            return edge.FieldCondition(field, range=times)


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
