"""Points, payloads and queries as Qdrant Edge's classes."""

from collections.abc import Iterable
from typing import Final, cast
from uuid import UUID

import qdrant_edge as edge
from pydantic import JsonValue

from memory_store.vectors.port import NO_WORDS, Payload, Placed, Point, Query, Ranked, SparseVector
from memory_store.vectors.schema import DENSE, SPARSE

_MOST_MET: Final = 32_768


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
        sparse=SparseVector(tuple(sparse.indices), tuple(sparse.values))
        if isinstance(sparse, edge.SparseVector)
        else NO_WORDS,
        payload=payload_of(record.payload),
    )


def payload_of(payload: "edge.Payload | None") -> Payload:
    """Returns the payload, empty where Edge returns none."""
    return cast("dict[str, JsonValue]", payload or {})


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
        return self._met.get(number) or self._again(number, point_id)

    def text(self, point_id: UUID | int | str) -> str:
        """Returns the text of an id as Edge gives it."""
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

    def _again(self, number: int, point_id: UUID) -> tuple[str, int | None]:
        known = self._before.get(number) or (str(point_id), None)
        self._keep(number, known)
        return known

    def _keep(self, number: int, known: tuple[str, int | None]) -> None:
        if len(self._met) == _MOST_MET:
            self._met, self._before = {}, self._met
        self._met[number] = known


def to_query(query: Query) -> edge.Query:
    """Converts a dense or sparse query."""
    if isinstance(query, SparseVector):
        return edge.Query.Nearest(_sparse_to_edge(query), using=SPARSE)
    return edge.Query.Nearest(list(query), using=DENSE)
