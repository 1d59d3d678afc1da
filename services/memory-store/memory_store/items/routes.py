"""Routes of stored items: add, list, read, edit, delete, recover, erase, export, import; and of buffers and changes."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import AwareDatetime, Field

from memloop.wire.changes import AskNewest, ChangePage, Newest, StoreChanges
from memloop.wire.feedback import FeedbackRequest
from memloop.wire.fields import Moment
from memloop.wire.history import History
from memloop.wire.listing import Entities, Listing, StoreList
from memloop.wire.memory import (
    BatchResult,
    Buffer,
    BufferPage,
    Erased,
    ItemPage,
    ItemPatch,
    MemoryItem,
    Namespace,
    Scope,
    StoreAdd,
    StoreAddResult,
    StoreBatch,
)
from memloop.wire.neighbours import Neighbours, StoreNeighbours
from memloop.wire.transfer import ExportPage, Imported, StoreExport, StoreImport
from memloop_service.headers import version_in
from memloop_state.store.buffers import Buffers
from memloop_state.store.feed import ChangeFeed
from memory_store.items.feedback import Feedbacks
from memory_store.items.items import Items
from memory_store.items.listing import Listings
from memory_store.items.lookup import Neighbourhoods, Owned, View
from memory_store.items.recovery import Recovery
from memory_store.items.transfer import Transfer
from memory_store.items.writing import Writer


@dataclass(frozen=True, slots=True)
class ItemServices:
    """The services behind the routes of items."""

    writer: Writer
    items: Items
    recovery: Recovery
    neighbourhoods: Neighbourhoods
    listings: Listings
    transfer: Transfer
    feedbacks: Feedbacks


class ItemsQuery(Namespace):
    """The query of ``GET /v1/items``: a namespace, a page, and whether to include history and raw turns."""

    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=500)
    latest_only: bool = True
    include_raw: bool = False
    as_of: Moment | None = None


class ErasureQuery(Namespace):
    """The query of ``DELETE /v1/namespaces``: a namespace, and whether to count only."""

    dry_run: bool = False


def item_routes(new_router: partial[APIRouter], services: ItemServices) -> tuple[APIRouter, ...]:
    """Every route below ``/items``, ``/entities`` and ``DELETE /namespaces``."""
    return (
        _write_routes(new_router, services.writer),
        _page_routes(new_router, services),
        _owned_routes(new_router, services.items, services.recovery),
        _feedback_routes(new_router, services.feedbacks),
        _transfer_routes(new_router, services.transfer),
    )


def _write_routes(new_router: partial[APIRouter], writer: Writer) -> APIRouter:
    router = new_router(tags=["items"])

    @router.post("/items")
    async def add(request: StoreAdd) -> StoreAddResult:
        return await writer.add(request)

    @router.post("/items/batch")
    async def add_batch(request: StoreBatch) -> BatchResult:
        return await writer.add_batch(request.adds, began=request.began)

    _ = add, add_batch
    return router


def _page_routes(new_router: partial[APIRouter], services: ItemServices) -> APIRouter:
    router = new_router(tags=["items"])

    @router.get("/items")
    async def page(query: Annotated[ItemsQuery, Query()]) -> ItemPage:
        view = View(latest_only=query.latest_only, include_raw=query.include_raw, as_of=query.as_of)
        return await services.items.page(query, view=view, limit=query.limit, cursor=query.cursor)

    @router.post("/items/list")
    async def listing(request: StoreList) -> Listing:
        return await services.listings.page(request)

    @router.post("/items/neighbours")
    async def neighbours(request: StoreNeighbours) -> Neighbours:
        return await services.neighbourhoods.of(request)

    @router.get("/entities")
    async def entities(scope: Annotated[Scope, Query()]) -> Entities:
        return await services.listings.entities(scope)

    @router.delete("/namespaces", tags=["namespaces"])
    async def erase(asked: Annotated[ErasureQuery, Query()], x_fencing_token: FencingToken = None) -> Erased:
        if asked.dry_run:
            return await services.items.would_erase(asked)
        return await services.items.erase(asked, token=x_fencing_token)

    _ = page, listing, neighbours, entities, erase
    return router


def _owned_routes(new_router: partial[APIRouter], items: Items, recovery: Recovery) -> APIRouter:
    router = new_router(tags=["items"])
    asked = Depends(_owned)
    version = Depends(_version)

    @router.get("/items/{item_id}")
    async def read(owned: Annotated[Owned, asked], response: Response) -> MemoryItem:
        item = await items.read(owned)
        response.headers["ETag"] = f'"{item.version}"'
        return item

    @router.patch("/items/{item_id}")
    async def edit(
        owned: Annotated[Owned, asked], patch: ItemPatch, if_version: Annotated[int | None, version]
    ) -> MemoryItem:
        return await items.edit(owned, patch, if_version=if_version)

    @router.delete("/items/{item_id}", status_code=204)
    async def delete(owned: Annotated[Owned, asked], if_version: Annotated[int | None, version]) -> None:
        await items.delete(owned, if_version=if_version)

    @router.get("/items/{item_id}/history")
    async def history(owned: Annotated[Owned, asked]) -> History:
        return await items.history(owned)

    @router.post("/items/{item_id}/recover")
    async def recover(owned: Annotated[Owned, asked]) -> MemoryItem:
        return await recovery.recover(owned)

    _ = read, edit, delete, history, recover
    return router


def _feedback_routes(new_router: partial[APIRouter], feedbacks: Feedbacks) -> APIRouter:
    router = new_router(tags=["items"])

    @router.post("/items/{item_id}/feedback")
    async def give(owned: Annotated[Owned, Depends(_owned)], request: FeedbackRequest) -> MemoryItem:
        return await feedbacks.give(owned, request)

    _ = give
    return router


def _transfer_routes(new_router: partial[APIRouter], transfer: Transfer) -> APIRouter:
    router = new_router(tags=["items"])

    @router.post("/items/export")
    async def export(request: StoreExport) -> ExportPage:
        return await transfer.export(request)

    @router.post("/items/import")
    async def take(request: StoreImport) -> Imported:
        return await transfer.take(request)

    _ = export, take
    return router


async def _owned(item_id: str, x_memloop_tenant: Annotated[str, Header(min_length=1, max_length=256)]) -> Owned:
    return Owned(x_memloop_tenant, item_id)


async def _version(if_match: Annotated[str, Header()] = "*") -> int | None:
    return version_in(if_match.strip())


FencingToken: TypeAlias = Annotated[int | None, Header()]


def buffer_routes(new_router: partial[APIRouter], buffers: Buffers) -> APIRouter:
    """Return every route below ``/buffers``."""
    router = new_router(prefix="/v1/buffers", tags=["namespaces"])

    @router.get("")
    async def page(
        tenant: Annotated[str, Query(min_length=1, max_length=256)],
        user_id: Annotated[str | None, Query(min_length=1, max_length=256)] = None,
    ) -> BufferPage:
        return await buffers.page(tenant, user_id)

    @router.get("/idle")
    async def idle(before: AwareDatetime, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> BufferPage:
        return await buffers.idle(before, limit=limit)

    @router.put("")
    async def put(buffer: Buffer, x_fencing_token: FencingToken = None) -> Buffer:
        return await buffers.put(buffer, token=x_fencing_token)

    @router.delete("", status_code=204)
    async def clear(namespace: Annotated[Namespace, Query()], x_fencing_token: FencingToken = None) -> None:
        await buffers.clear(namespace, token=x_fencing_token)

    _ = page, idle, put, clear
    return router


def change_routes(new_router: partial[APIRouter], feed: ChangeFeed) -> APIRouter:
    """``POST /changes`` and ``POST /changes/newest``."""
    router = new_router(tags=["changes"])

    @router.post("/changes")
    async def page(request: StoreChanges) -> ChangePage:
        return await feed.page(request)

    @router.post("/changes/newest")
    async def newest(request: AskNewest) -> Newest:
        return await feed.newest(request.tenants)

    _ = page, newest
    return router
