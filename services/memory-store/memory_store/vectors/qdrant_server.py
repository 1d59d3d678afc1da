"""A Qdrant server (1.20 or newer) through its async client: production, and several stores over one collection."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from qdrant_client import AsyncQdrantClient, models

from memloop.wire.errors import NotSupported, Unavailable
from memory_store.vectors.filters import Condition, Ids, all_of
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.port import (
    Collection,
    Found,
    Page,
    Payload,
    Placed,
    Point,
    Query,
    Ranked,
    SparseVector,
    VectorState,
)
from memory_store.vectors.schema import DENSE, SPARSE, CollectionSpec, check_version, is_ours
from memory_store.vectors.server_clients import RenewedClient
from memory_store.vectors.server_errors import alias_taken, made, repeated, translated
from memory_store.vectors.server_layout import OWNER, Layout, owner_of
from memory_store.vectors.server_setup import ONE_NODE, ShardConfig, set_up, state_of

_ALIAS = "memloop"
_READ_S = 5.0
"""How long names are asked for again: operators ask for them too."""
_PAYLOAD = models.PayloadSelectorExclude(exclude=[OWNER])


class QdrantServer(LiveCollection):
    """The collections on a Qdrant server. The clients are closed with the store.

    ``points``: the client of requests about points, if it is another one.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        sharding: ShardConfig = ONE_NODE,
        *,
        points: AsyncQdrantClient | RenewedClient | None = None,
    ) -> None:
        super().__init__(ServerCollections(client, sharding, points=points))
        self._client = client
        self._spread = sharding

    async def state(self) -> VectorState:
        with translated():
            return await state_of(self._client, self.name, self._spread)


class ServerCollections:
    """``Collections`` of a Qdrant server; an alias names the one in service."""

    def __init__(
        self,
        client: AsyncQdrantClient,
        sharding: ShardConfig = ONE_NODE,
        *,
        points: AsyncQdrantClient | RenewedClient | None = None,
    ) -> None:
        self._client = client
        self._points = points or client
        self._spread = sharding

    async def names(self) -> Sequence[str]:
        """Those with our names; others may share the server."""
        found = await repeated(self._client.get_collections, patience_s=_READ_S)
        return [collection.name for collection in found.collections if is_ours(collection.name)]

    async def serving(self) -> str | None:
        """What the alias names."""
        found = await repeated(self._client.get_aliases, patience_s=_READ_S)
        return next((alias.collection_name for alias in found.aliases if alias.alias_name == _ALIAS), None)

    async def serve(self, name: str) -> None:
        """Move the alias: the server deletes and makes it in one step."""
        make = models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=_ALIAS))
        drop = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=_ALIAS))
        if await self.serving() is None:
            await made(lambda: self._client.update_collection_aliases([make]))
            served = await self.serving()
            if served is not None and served != name:
                raise alias_taken(served)
        else:
            await repeated(lambda: self._client.update_collection_aliases([drop, make]))

    async def open(self, spec: CollectionSpec, name: str) -> "ServerCollection":
        """Find the collection or make it, with its indexes. Raises ``ServerTooOld`` too."""
        with translated():
            check_version((await self._client.info()).version)
        layout = await set_up(self._client, spec, name, self._spread)
        return ServerCollection(self._points, name, layout)

    async def drop(self, name: str) -> None:
        with translated():
            await self._client.delete_collection(name)

    async def archive(self, collection: Collection) -> Path:
        raise NotSupported("The vectors are on a Qdrant server, which makes snapshots of its own.")

    async def close(self) -> None:
        await self._client.close()
        await self._points.close()


class ServerCollection:
    """``Collection`` of a Qdrant server. A request that names tenant and user asks the shard of that user alone."""

    def __init__(self, client: AsyncQdrantClient | RenewedClient, name: str, layout: Layout) -> None:
        self._source = client
        self._layout = layout
        self.name = name

    @property
    def _client(self) -> AsyncQdrantClient:
        return self._source.now() if isinstance(self._source, RenewedClient) else self._source

    async def close(self) -> None:
        """Nothing is held: the server keeps what it has acknowledged."""

    async def ping(self) -> None:
        """One round trip. Raises ``Unavailable`` where the collection is not there."""
        with translated():
            exists = await self._client.collection_exists(self.name)
        if not exists:
            raise Unavailable(f"The collection {self.name} is not there.", code="qdrant_no_collection")

    async def admit(self) -> None:
        """The server refuses what it has no room for."""

    async def upsert(self, points: Sequence[Point]) -> None:
        """Waits until the server has applied the points; those of users on several shards go in several requests."""
        with translated():
            for key, placed in self._layout.placed(points).items():
                structs = [_to_struct(point) for point in placed]
                await self._client.upsert(self.name, points=structs, wait=True, shard_key_selector=key)

    async def get(self, ids: Sequence[str], *, where: Condition, agreed: bool = False) -> Sequence[Point]:
        if not ids:
            return []
        some, all_equal = all_of([Ids(tuple(ids)), where]), models.ReadConsistencyType.ALL if agreed else None
        records, _ = await self._scrolled(some, len(ids), with_vectors=True, consistency=all_equal)
        return [Point.of(record.id, record.vector, record.payload) for record in records]

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        records, next_id = await self._scrolled(where, limit, offset=start_id)
        found = tuple(Found(str(record.id), _payload(record.payload)) for record in records)
        return Page(found, None if next_id is None else str(next_id))

    async def newest(self, *, where: Condition, limit: int) -> Sequence[Found]:
        order = models.OrderBy(key="created_at", direction=models.Direction.DESC)
        records, _ = await self._scrolled(where, limit, order_by=order)
        return [Found(str(record.id), _payload(record.payload)) for record in records]

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        order = models.OrderBy(key="place", direction=models.Direction.ASC)
        records, _ = await self._scrolled(where, limit, order_by=order, with_payload=False)
        return [Placed(str(record.id), int(record.order_value or 0)) for record in records]

    async def _scrolled(
        self, where: Condition, limit: int, *, with_payload: models.PayloadSelectorExclude | bool = _PAYLOAD, **how: Any
    ) -> tuple[list[models.Record], object]:
        """Return records on which the condition holds, and where the next ones begin."""
        with translated():
            return await self._client.scroll(
                self.name,
                scroll_filter=self._layout.filter(where),
                limit=limit,
                with_payload=with_payload,
                shard_key_selector=self._layout.read_from(where),
                **how,
            )

    async def values(self, field: str, *, where: Condition, limit: int) -> Mapping[str, int]:
        with translated():
            answer = await self._client.facet(
                self.name,
                key=field,
                facet_filter=self._layout.filter(where),
                limit=limit,
                exact=True,
                shard_key_selector=self._layout.read_from(where),
            )
        return {str(hit.value): hit.count for hit in answer.hits}

    async def nearest(self, dense: tuple[float, ...], *, where: Condition, limit: int) -> Sequence[Found]:
        with translated():
            answer = await self._client.query_points(
                self.name,
                query=list(dense),
                using=DENSE,
                query_filter=self._layout.filter(where),
                limit=limit,
                with_payload=_PAYLOAD,
                shard_key_selector=self._layout.read_from(where),
            )
        return [Found(str(point.id), _payload(point.payload), point.score) for point in answer.points]

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        seen, asked = self._layout.filter(where), self._layout.read_from(where)
        counted = models.SearchParams(idf=models.IdfCorpusParams(corpus=self._layout.filter(corpus)))
        requests = [
            models.QueryRequest(
                query=_to_sparse(query) if isinstance(query, SparseVector) else list(query),
                using=SPARSE if isinstance(query, SparseVector) else DENSE,
                filter=seen,
                params=counted if isinstance(query, SparseVector) else None,
                limit=limit,
                with_payload=False,
                shard_key=asked,
            )
            for query in queries
        ]
        with translated():
            answers = await self._client.query_batch_points(self.name, requests)
        return [[Ranked(str(point.id), point.score) for point in answer.points] for answer in answers]

    async def count(self, *, where: Condition) -> int:
        with translated():
            answer = await self._client.count(
                self.name,
                count_filter=self._layout.filter(where),
                exact=True,
                shard_key_selector=self._layout.read_from(where),
            )
        return answer.count

    async def delete(self, *, where: Condition) -> None:
        """Remove by condition; waits until it is done."""
        with translated():
            selector = models.FilterSelector(filter=self._layout.filter(where))
            keys = self._layout.deleted_from(where)
            await self._client.delete(self.name, points_selector=selector, wait=True, shard_key_selector=keys)


def _to_struct(point: Point) -> models.PointStruct:
    vectors: dict[str, models.Vector] = {DENSE: list(point.dense)}
    if point.sparse.indices:
        vectors[SPARSE] = _to_sparse(point.sparse)
    return models.PointStruct(id=point.id, vector=vectors, payload={**point.payload, OWNER: owner_of(point.payload)})


def _to_sparse(vector: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def _payload(payload: models.Payload | None) -> Payload:
    return cast("Payload", payload or {})
