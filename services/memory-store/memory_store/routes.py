"""The store's internal HTTP API: thin, typed, behind one bearer key."""

import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import AwareDatetime, Field

from memloop.wire.errors import InvalidRequest, Unauthenticated
from memloop.wire.listing import Entities, Listing, StoreList
from memloop.wire.memory import (
    BatchResult,
    Buffer,
    BufferPage,
    Erased,
    History,
    ItemPage,
    ItemPatch,
    MemoryItem,
    Namespace,
    Scope,
    SearchResult,
    StoreAdd,
    StoreAddResult,
    StoreBatch,
    StoreSearch,
)
from memloop.wire.transfer import ExportPage, Imported, StoreExport, StoreImport
from memloop_service.direct_route import DirectRoute
from memory_store.admin_routes import admin_routes
from memory_store.buffers import Buffers
from memory_store.gate import Gate
from memory_store.items import Items, Owned
from memory_store.listing import Listings
from memory_store.recovery import Recovery
from memory_store.retrieval import Retrieval, View
from memory_store.transfer import Transfer
from memory_store.upkeep import Upkeep
from memory_store.writing import Writer

FencingToken: TypeAlias = Annotated[int | None, Header()]
_ETAG = re.compile(r'(?:W/)?"?(\d{1,18})"?')


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the routes hand their requests to."""

    writer: Writer
    retrieval: Retrieval
    items: Items
    recovery: Recovery
    buffers: Buffers
    listings: Listings
    upkeep: Upkeep
    transfer: Transfer
    gate: Gate


class ItemsQuery(Namespace):
    """``GET /v1/items``: whose, which page, and whether history and raw turns are wanted too."""

    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=500)
    latest_only: bool = True
    include_raw: bool = False
    as_of: datetime | None = None


def store_routes(parts: Capabilities, *, key: str | None) -> APIRouter:
    """All routes of the store."""
    router = APIRouter(prefix="/v1", dependencies=[Depends(_guard(key))])
    router.include_router(_hot_routes(parts))
    router.include_router(_item_routes(parts))
    router.include_router(_owned_routes(parts.items, parts.recovery))
    router.include_router(_buffer_routes(parts))
    router.include_router(_transfer_routes(parts.transfer))
    router.include_router(admin_routes(parts.upkeep))
    return router


def _hot_routes(parts: Capabilities) -> APIRouter:
    router = APIRouter(tags=["items"], route_class=DirectRoute)

    @router.post("/items")
    async def add(request: StoreAdd) -> StoreAddResult:
        return await parts.writer.add(request)

    @router.post("/items/batch")
    async def add_batch(request: StoreBatch) -> BatchResult:
        return await parts.writer.add_batch(request.adds)

    @router.post("/items/search")
    async def search(request: StoreSearch) -> SearchResult:
        async with parts.gate.shared():
            return await parts.retrieval.search(request)

    _ = add, add_batch, search
    return router


def _item_routes(parts: Capabilities) -> APIRouter:
    router = APIRouter(tags=["items"])

    @router.get("/items")
    async def page(query: Annotated[ItemsQuery, Query()]) -> ItemPage:
        view = View(latest_only=query.latest_only, include_raw=query.include_raw, as_of=query.as_of)
        return await parts.items.page(query, view=view, limit=query.limit, cursor=query.cursor)

    @router.post("/items/list")
    async def listing(request: StoreList) -> Listing:
        return await parts.listings.page(request)

    @router.get("/entities")
    async def entities(scope: Annotated[Scope, Query()]) -> Entities:
        return await parts.listings.entities(scope)

    _ = page, listing, entities
    return router


def _owned_routes(items: Items, recovery: Recovery) -> APIRouter:
    router = APIRouter(tags=["items"])
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


def _transfer_routes(transfer: Transfer) -> APIRouter:
    router = APIRouter(tags=["items"])

    @router.post("/items/export")
    async def export(request: StoreExport) -> ExportPage:
        return await transfer.export(request)

    @router.post("/items/import")
    async def take(request: StoreImport) -> Imported:
        return await transfer.take(request)

    _ = export, take
    return router


def _buffer_routes(parts: Capabilities) -> APIRouter:
    router = APIRouter(tags=["namespaces"])

    @router.delete("/namespaces")
    async def erase(namespace: Annotated[Namespace, Query()]) -> Erased:
        return await parts.items.erase(namespace)

    @router.get("/buffers")
    async def buffers(
        tenant: Annotated[str, Query(min_length=1, max_length=256)],
        user_id: Annotated[str | None, Query(min_length=1, max_length=256)] = None,
    ) -> BufferPage:
        return await parts.buffers.page(tenant, user_id)

    @router.get("/buffers/idle")
    async def idle(before: AwareDatetime, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> BufferPage:
        return await parts.buffers.idle(before, limit=limit)

    @router.put("/buffers")
    async def put(buffer: Buffer, x_fencing_token: FencingToken = None) -> Buffer:
        return await parts.buffers.put(buffer, token=x_fencing_token)

    @router.delete("/buffers", status_code=204)
    async def clear(namespace: Annotated[Namespace, Query()], x_fencing_token: FencingToken = None) -> None:
        await parts.buffers.clear(namespace, token=x_fencing_token)

    _ = erase, buffers, idle, put, clear
    return router


def _guard(key: str | None) -> Callable[[Request], Awaitable[None]]:
    """Checks the bearer key, in constant time; with no key configured everybody on this machine may ask."""

    async def check(request: Request) -> None:
        if key is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        fits = secrets.compare_digest(given.strip().encode(), key.encode())
        if scheme.lower() != "bearer" or not fits:
            raise Unauthenticated("the store's key is missing or wrong")

    return check


async def _owned(item_id: str, x_memloop_tenant: Annotated[str, Header(min_length=1, max_length=256)]) -> Owned:
    return Owned(x_memloop_tenant, item_id)


async def _version(if_match: Annotated[str | None, Header()] = None) -> int | None:
    """The version that ``If-Match`` names: ``3``, ``"3"`` or ``W/"3"``; ``*`` is any."""
    if if_match is None or if_match.strip() == "*":
        return None
    named = _ETAG.fullmatch(if_match.strip())
    if named is None:
        raise InvalidRequest("If-Match takes a version number", param="If-Match")
    return int(named.group(1))
