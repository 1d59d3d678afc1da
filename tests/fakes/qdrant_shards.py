"""The points of a Qdrant collection, spread over shards: each shard is a local client, with an IDF of its own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

from aiohttp import web
from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models

POINTS = "points"
"""The name of the collection that each shard is."""
_SELECTOR: TypeAdapter[models.PointsSelector] = TypeAdapter(models.PointsSelector)


class Refused(Exception):
    """What a server answers with status 400."""


class CopiesMissing(Exception):
    """What a server answers with status 500: too few copies took a write, or none can answer a read."""


@dataclass(frozen=True)
class Records:
    """A page of points."""

    points: list[models.Record]
    next_page_offset: models.ExtendedPointId | None = None


@dataclass
class Shards:
    """One collection. ``asked`` holds the shard keys that each request about points named, None for all shards."""

    params: models.CreateCollection
    custom: bool
    shards: dict[str | int, QdrantClient] = field(default_factory=dict[str | int, QdrantClient])
    asked: list[list[str | int] | None] = field(default_factory=list[list[str | int] | None])

    def add(self, key: str | int) -> None:
        """Make an empty shard. Raises ``Refused`` if there is one with that key."""
        if key in self.shards:
            raise Refused(f"Shard key {key} already exists")
        self.shards[key] = self.made()

    def made(self) -> QdrantClient:
        """A new, empty shard."""
        shard = QdrantClient(":memory:")
        shard.create_collection(
            POINTS, vectors_config=self.params.vectors, sparse_vectors_config=self.params.sparse_vectors
        )
        return shard

    async def answer(self, operation: str, request: web.Request) -> object:
        """The result of a request to ``points{operation}`` or to ``facet``."""
        body = await request.read()
        match operation:
            case "/scroll":
                return self.scroll(models.ScrollRequest.model_validate_json(body))
            case "/query":
                return {"points": self.query(models.QueryRequest.model_validate_json(body))}
            case "/query/batch":
                asked = models.QueryRequestBatch.model_validate_json(body).searches
                return [{"points": self.query(one)} for one in asked]
            case "/count":
                return self.count(models.CountRequest.model_validate_json(body))
            case "/delete":
                return self.delete(_SELECTOR.validate_json(body))
            case "/payload/delete":
                return self._delete_payload(models.DeletePayload.model_validate_json(body))
            case "facet":
                return self.facet(models.FacetRequest.model_validate_json(body))
            case _:
                return self.upsert(models.PointsList.model_validate_json(body))

    def _of(self, selector: object) -> list[QdrantClient]:
        if selector is None:
            self.asked.append(None)
            return list(self.shards.values())
        keys = cast("list[str | int]", selector if isinstance(selector, list) else [selector])
        self.asked.append(keys)
        unknown = [key for key in keys if key not in self.shards or not self.custom]
        if unknown:
            raise Refused(f"Shard key {unknown[0]} not found")
        return [self.shards[key] for key in keys]

    def scroll(self, asked: models.ScrollRequest) -> Records:
        """A page of points."""
        limit = asked.limit or 10
        records = [
            record
            for shard in self._of(asked.shard_key)
            for record in shard.scroll(
                POINTS,
                scroll_filter=asked.filter,
                limit=limit + 1,
                order_by=asked.order_by,
                offset=asked.offset,
                with_payload=True if asked.with_payload is None else asked.with_payload,
                with_vectors=asked.with_vector or False,
            )[0]
        ]
        if asked.order_by is None:
            records.sort(key=lambda record: UUID(str(record.id)))
            return Records(records[:limit], records[limit].id if len(records) > limit else None)
        newest = isinstance(asked.order_by, models.OrderBy) and asked.order_by.direction == models.Direction.DESC
        records.sort(key=lambda record: record.order_value or 0, reverse=newest)
        return Records(records[:limit])

    def query(self, asked: models.QueryRequest) -> list[models.ScoredPoint]:
        """The best points of all shards together."""
        found = [
            point
            for shard in self._of(asked.shard_key)
            for point in shard.query_batch_points(POINTS, [asked])[0].points
        ]
        found.sort(key=lambda point: point.score, reverse=True)
        return found[: asked.limit or 10]

    def count(self, asked: models.CountRequest) -> models.CountResult:
        """The sum over the shards."""
        shards = self._of(asked.shard_key)
        return models.CountResult(count=sum(shard.count(POINTS, asked.filter).count for shard in shards))

    def facet(self, asked: models.FacetRequest) -> models.FacetResponse:
        """The values of a field with the sums of their counts."""
        limit = asked.limit or 10
        counts = Counter[str]()
        for shard in self._of(asked.shard_key):
            for hit in shard.facet(POINTS, asked.key, facet_filter=asked.filter, limit=2**31, exact=True).hits:
                counts[str(hit.value)] += hit.count
        return models.FacetResponse(
            hits=[models.FacetValueHit(value=value, count=count) for value, count in counts.most_common(limit)]
        )

    def upsert(self, written: models.PointsList) -> object:
        """Store the points: under the key, or by their ids where there are no keys."""
        if self.custom:
            if written.shard_key is None:
                raise Refused("Shard key not specified")
            for shard in self._of(written.shard_key):
                shard.upsert(POINTS, written.points)
            return _APPLIED
        self._of(written.shard_key)
        for number, points in self._by_id(written.points).items():
            self.shards[number].upsert(POINTS, points)
        return _APPLIED

    def _by_id(self, points: Sequence[models.PointStruct]) -> dict[int, list[models.PointStruct]]:
        placed: dict[int, list[models.PointStruct]] = {}
        for point in points:
            placed.setdefault(UUID(str(point.id)).int % len(self.shards), []).append(point)
        return placed

    def delete(self, selector: models.PointsSelector) -> object:
        """Remove the points."""
        if self.custom and selector.shard_key is None:
            raise Refused("Shard key not specified")
        for shard in self._of(selector.shard_key):
            shard.delete(POINTS, selector)
        return _APPLIED

    def _delete_payload(self, asked: models.DeletePayload) -> object:
        for shard in self._of(asked.shard_key):
            shard.delete_payload(POINTS, asked.keys, points=asked.filter or models.Filter())
        return _APPLIED


_APPLIED = {"operation_id": 1, "status": "completed"}
