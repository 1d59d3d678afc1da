# ruff: noqa: N802 - the methods have the names of the API
"""The part of a Qdrant server's gRPC API that is about points, in front of the same shards as the REST stand-in."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import grpc.aio
from qdrant_client import grpc as q
from qdrant_client import models
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc

from tests.fakes.qdrant_shards import Shards

_Found = TypeVar("_Found", models.Record, models.ScoredPoint)
Failure: TypeAlias = tuple[grpc.StatusCode, str]
_STATUS = q.UpdateResult(operation_id=1, status=q.UpdateStatus.Completed)


@asynccontextmanager
async def serving_points(collections: Mapping[str, Shards], failure: Failure | None = None) -> AsyncGenerator[int]:
    """The port on the loopback, as long as it runs. ``failure`` answers every request."""
    server = grpc.aio.server()
    q.add_PointsServicer_to_server(_Points(collections, failure), server)  # pyright: ignore[reportUnknownMemberType]
    q.add_CollectionsServicer_to_server(_Collections(collections), server)  # pyright: ignore[reportUnknownMemberType]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


class _Collections(q.CollectionsServicer):
    def __init__(self, collections: Mapping[str, Shards]) -> None:
        self._collections = collections

    async def CollectionExists(self, request: Any, context: Any) -> Any:
        del context
        found = request.collection_name in self._collections
        return q.CollectionExistsResponse(result=q.CollectionExists(exists=found))


class _Points(q.PointsServicer):
    def __init__(self, collections: Mapping[str, Shards], failure: Failure | None) -> None:
        self._collections = collections
        self._failure = failure

    async def Upsert(self, request: Any, context: Any) -> Any:
        points = [GrpcToRest.convert_point_struct(point) for point in request.points]
        shards = await self._of(request, context)
        shards.upsert(models.PointsList(points=points, shard_key=_keys(request)))
        return q.PointsOperationResponse(result=_STATUS)

    async def Delete(self, request: Any, context: Any) -> Any:
        shards = await self._of(request, context)
        where = GrpcToRest.convert_filter(request.points.filter)
        shards.delete(models.FilterSelector(filter=where, shard_key=_keys(request)))
        return q.PointsOperationResponse(result=_STATUS)

    async def Scroll(self, request: Any, context: Any) -> Any:
        ordered = request.HasField("order_by")
        page = (await self._of(request, context)).scroll(
            models.ScrollRequest(
                filter=GrpcToRest.convert_filter(request.filter),
                limit=request.limit,
                offset=GrpcToRest.convert_point_id(request.offset) if request.HasField("offset") else None,
                order_by=GrpcToRest.convert_order_by(request.order_by) if ordered else None,
                with_payload=GrpcToRest.convert_with_payload_selector(request.with_payload),
                with_vector=request.with_vectors.enable,
                shard_key=_keys(request),
            )
        )
        after = page.next_page_offset
        return q.ScrollResponse(
            result=[RestToGrpc.convert_record(_filled(record)) for record in page.points],
            next_page_offset=RestToGrpc.convert_extended_point_id(after) if after is not None else None,
        )

    async def Query(self, request: Any, context: Any) -> Any:
        found = (await self._of(request, context)).query(_query(request))
        return q.QueryResponse(result=_scored(found))

    async def QueryBatch(self, request: Any, context: Any) -> Any:
        shards = await self._of(request, context)
        found = [shards.query(_query(one)) for one in request.query_points]
        return q.QueryBatchResponse(
            result=[
                q.BatchResult(result=[RestToGrpc.convert_scored_point(_filled(point)) for point in one])
                for one in found
            ]
        )

    async def Count(self, request: Any, context: Any) -> Any:
        where = GrpcToRest.convert_filter(request.filter)
        counted = (await self._of(request, context)).count(
            models.CountRequest(filter=where, shard_key=_keys(request), exact=True)
        )
        return q.CountResponse(result=q.CountResult(count=counted.count))

    async def Facet(self, request: Any, context: Any) -> Any:
        asked = models.FacetRequest(
            key=request.key,
            filter=GrpcToRest.convert_filter(request.filter),
            limit=request.limit,
            shard_key=_keys(request),
        )
        hits = (await self._of(request, context)).facet(asked).hits
        return q.FacetResponse(hits=[RestToGrpc.convert_facet_value_hit(hit) for hit in hits])

    async def _of(self, request: Any, context: Any) -> Shards:
        if self._failure:
            await context.abort(*self._failure)
        return self._collections[request.collection_name]


def _filled(found: _Found) -> _Found:
    """With an empty payload where there is none: a message of gRPC has no null."""
    return found.model_copy(update={"payload": found.payload or {}})


def _scored(points: Sequence[models.ScoredPoint]) -> list[Any]:
    return [RestToGrpc.convert_scored_point(_filled(point)) for point in points]


def _keys(request: Any) -> models.ShardKeySelector | None:
    named = request.HasField("shard_key_selector")
    return GrpcToRest.convert_shard_key_selector(request.shard_key_selector) if named else None


def _query(request: Any) -> models.QueryRequest:
    return models.QueryRequest(
        query=GrpcToRest.convert_query(request.query),
        using=request.using,
        filter=GrpcToRest.convert_filter(request.filter),
        params=GrpcToRest.convert_search_params(request.params) if request.HasField("params") else None,
        limit=request.limit,
        with_payload=GrpcToRest.convert_with_payload_selector(request.with_payload),
        shard_key=_keys(request),
    )
