"""A Qdrant server with points, written from its public REST API over the client's local mode: slow, but it filters."""

import time
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web
from pydantic import TypeAdapter
from qdrant_client import AsyncQdrantClient, models

from tests.fakes.qdrant_server import QdrantStandIn, failed, succeeded

_FILTER = TypeAdapter[models.Filter | None](models.Filter | None)
_VECTORS = TypeAdapter(dict[str, models.VectorParams])
_SPARSE = TypeAdapter(dict[str, models.SparseVectorParams])
_POINTS = TypeAdapter(list[models.PointStruct])
_QUERY = TypeAdapter[list[float] | models.SparseVector](list[float] | models.SparseVector)
_READS = frozenset({"scroll", "count", "query", "batch", "facet"})


@dataclass
class QdrantWithPoints(QdrantStandIn):
    """``last_read``: when each collection was last read; ``swapped_at``: when an alias was last changed."""

    last_read: dict[str, float] = field(default_factory=dict[str, float])
    swapped_at: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.local = AsyncQdrantClient(":memory:")

    async def _create(self, request: web.Request) -> web.Response:
        answer = await super()._create(request)
        if answer.status == 200:
            asked = self.collections[request.match_info["name"]]
            await self.local.create_collection(
                request.match_info["name"],
                vectors_config=_VECTORS.validate_python(asked["vectors"]),
                sparse_vectors_config=_SPARSE.validate_python(asked["sparse_vectors"]),
            )
        return answer

    async def _drop(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if self.collections.pop(name, None) is None:
            return succeeded(False)
        await self.local.delete_collection(name)
        return succeeded(True)

    async def _change_aliases(self, request: web.Request) -> web.Response:
        self.swapped_at = time.monotonic()
        return await super()._change_aliases(request)

    async def _points(self, request: web.Request) -> web.Response:
        name, operation = request.match_info["name"], request.path.rpartition("/")[2]
        body = cast("dict[str, Any]", await request.json())
        if name not in self.collections:
            return failed(404, f"Not found: Collection `{name}` doesn't exist!")
        if operation in _READS:
            self.last_read[name] = time.monotonic()
        result = await getattr(self, f"_{operation}_of")(name, body)
        return succeeded(result)

    async def _points_of(self, name: str, body: dict[str, Any]) -> object:
        return _json(await self.local.upsert(name, _POINTS.validate_python(body["points"])))

    async def _delete_of(self, name: str, body: dict[str, Any]) -> object:
        where = models.Filter.model_validate(body["filter"])
        return _json(await self.local.delete(name, models.FilterSelector(filter=where)))

    async def _scroll_of(self, name: str, body: dict[str, Any]) -> object:
        order = models.OrderBy.model_validate(body["order_by"]) if body.get("order_by") else None
        points, next_id = await self.local.scroll(
            name,
            scroll_filter=_FILTER.validate_python(body.get("filter")),
            limit=body["limit"],
            offset=body.get("offset"),
            order_by=order,
            with_payload=body.get("with_payload", True),
            with_vectors=body.get("with_vector", False),
        )
        return {"points": [_json(point) for point in points], "next_page_offset": next_id}

    async def _count_of(self, name: str, body: dict[str, Any]) -> object:
        return _json(await self.local.count(name, _FILTER.validate_python(body.get("filter"))))

    async def _facet_of(self, name: str, body: dict[str, Any]) -> object:
        where = _FILTER.validate_python(body.get("filter"))
        return _json(await self.local.facet(name, body["key"], facet_filter=where, limit=body["limit"]))

    async def _query_of(self, name: str, body: dict[str, Any]) -> object:
        answer = await self.local.query_points(
            name,
            query=_QUERY.validate_python(body["query"]["nearest"]),
            using=body["using"],
            query_filter=_FILTER.validate_python(body.get("filter")),
            limit=body["limit"],
            with_payload=body.get("with_payload", False),
        )
        return _json(answer)

    async def _batch_of(self, name: str, body: dict[str, Any]) -> object:
        return [await self._query_of(name, one) for one in body["searches"]]


def _json(answer: Any) -> Any:
    return answer.model_dump(mode="json", exclude_none=True)
