"""The port that retrieval and the domain use; both adapters pass one contract suite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from pydantic import JsonValue

from memloop.wire.base import Wire
from memory_store.vectors.filters import Condition
from memory_store.vectors.schema import DENSE, SPARSE, CollectionSpec

Payload: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights by term index; the store multiplies them with each term's inverse document frequency."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


NO_WORDS = SparseVector((), ())

Query: TypeAlias = tuple[float, ...] | SparseVector
"""What points are ranked by: the cosine to a dense vector, or BM25 of words."""


@dataclass(frozen=True, slots=True)
class Point:
    """What is stored: a UUID, both vectors (an empty sparse one is left out) and the payload."""

    id: str
    dense: tuple[float, ...]
    sparse: SparseVector
    payload: Payload

    @classmethod
    def of(cls, point_id: object, vectors: object, payload: object) -> "Point":
        """Return the point of a record as a client of Qdrant's reads it, with its vectors."""
        by_name = cast("dict[str, Any]", vectors)
        sparse = by_name.get(SPARSE)
        words = SparseVector(tuple(sparse.indices), tuple(sparse.values)) if sparse is not None else NO_WORDS
        return cls(str(point_id), tuple(by_name[DENSE]), words, cast("Payload", payload or {}))


class Found(NamedTuple):
    """A stored payload; ``score`` is 0 unless it was found by nearness. A tuple: a search makes dozens."""

    id: str
    payload: Payload
    score: float = 0.0


class Ranked(NamedTuple):
    """A point in a ranking, by its score. A tuple: a search makes hundreds.

    ``place`` is that of ``Placed``, where the store has it at hand; None where it would have to be read.
    """

    id: str
    score: float
    place: int | None = None


class Placed(NamedTuple):
    """A point's ``place``: an integer that orders the memories of a conversation."""

    id: str
    place: int


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the points, in the order of their ids; ``next_id`` None ends the list."""

    found: tuple[Found, ...]
    next_id: str | None = None


class VectorState(Wire):
    """A Qdrant server, its nodes, and how the collection in service lies on them; all null with embedded vectors.

    ``copies``: the live copies of the shard with the fewest; ``shards`` and ``nodes`` are those that there are.
    ``warning``: a sentence for the operator when there are fewer copies than were asked for.
    """

    version: str | None = None
    distributed: bool | None = None
    nodes: int | None = None
    shards: int | None = None
    copies: int | None = None
    copies_asked: int | None = None
    write_consistency: int | None = None
    warning: str | None = None


class Collection(Protocol):
    """Points under one name. Failures raise ``Unavailable`` or ``DependencyError``."""

    @property
    def name(self) -> str:
        """The collection's name."""
        ...

    async def close(self) -> None:
        """Flush everything to disk and close."""
        ...

    async def ping(self) -> None:
        """Raise if the store cannot answer."""
        ...

    async def admit(self) -> None:
        """Raise ``Unavailable`` while there is no room for new memories; nothing of a write has begun then."""
        ...

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store all the points in one operation; when it returns they survive the death of the process."""
        ...

    async def get(self, ids: Sequence[str], *, where: Condition, agreed: bool = False) -> Sequence[Point]:
        """Those of the points that the condition allows, vectors included, in any order.

        ``agreed``: only those of which all copies are equal. Raises ``Unavailable`` where a copy cannot be read.
        """
        ...

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        """A page of payloads in the order of ids, from ``start_id`` on."""
        ...

    async def newest(self, *, where: Condition, limit: int) -> Sequence[Found]:
        """Payloads by their ``created_at``, the newest first."""
        ...

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        """The points that have a ``place``, the lowest first; payloads are not read."""
        ...

    async def values(self, field: str, *, where: Condition, limit: int) -> Mapping[str, int]:
        """The texts that stand in an indexed field, each with the number of its points, the most frequent first."""
        ...

    async def nearest(self, dense: tuple[float, ...], *, where: Condition, limit: int) -> Sequence[Found]:
        """The points of the highest cosine, best first."""
        ...

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        """The best points by each query in one round trip; payloads, most of the cost, are not read.

        ``corpus``: the points over which inverse document frequency is counted, so that the words of one user never
        move another's scores.
        """
        ...

    async def count(self, *, where: Condition) -> int:
        """How many points, exactly."""
        ...

    async def delete(self, *, where: Condition) -> None:
        """Remove the points, vectors and payload."""
        ...


class Collections(Protocol):
    """All collections of one place, and which of them is in service."""

    async def names(self) -> Sequence[str]:
        """Those whose names are ours."""
        ...

    async def serving(self) -> str | None:
        """The one that is in service; None before the first."""
        ...

    async def serve(self, name: str) -> None:
        """Put another one in service, in one step that survives a crash."""
        ...

    async def open(self, spec: CollectionSpec, name: str) -> Collection:
        """Load the collection or make it, with its payload indexes. Raises ``EmbeddingMismatch``: another dimension."""
        ...

    async def drop(self, name: str) -> None:
        """Remove a collection that is not open, files and all."""
        ...

    async def archive(self, collection: Collection) -> Path:
        """Write an open collection, and that it is in service, into a new tar file, the caller's to delete.

        Nothing else may write meanwhile. Raises ``NotSupported`` where another process keeps the files.
        """
        ...

    async def close(self) -> None:
        """Release the place."""
        ...
