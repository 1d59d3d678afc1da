"""Routes of stored items: add, list, read, edit, delete, recover, erase, export, import; and of buffers and changes."""

from functools import partial
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import AwareDatetime, Field

from memloop.wire.changes import AskNewest, ChangePage, Newest, StoreChanges
from memloop.wire.feedback import FeedbackRequest
from memloop.wire.fields import Moment
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
from memloop.wire.store_requests import (
    Entities,
    ExportPage,
    History,
    Imported,
    Listing,
    Neighbours,
    StoreExport,
    StoreImport,
    StoreList,
    StoreNeighbours,
)
from memloop_service import ERRORS, of_app
from memloop_service.incoming import refuse_half_characters, refuse_unknown, refuse_wrong_key, version_in
from memloop_state.store.tenants import Buffers, ChangeFeed
from memory_store.items import tools, transfer
from memory_store.items.documents import View
from memory_store.items.items import Items
from memory_store.items.tools import Owned
from memory_store.items.writing import Writer
from memory_store.vectors.live import Gate


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


_ASKED: Final = [Depends(each) for each in (refuse_wrong_key, refuse_unknown, refuse_half_characters)]
store_router: Final = partial(APIRouter, prefix="/v1", dependencies=_ASKED, responses=ERRORS)
"""Makes a router of any slice: every route checks the bearer key, and refuses what it does not know."""


async def owned_of(item_id: str, x_memloop_tenant: Annotated[str, Header(min_length=1, max_length=256)]) -> Owned:
    """Return the item that the request names, of the tenant that it names."""
    return Owned(x_memloop_tenant, item_id)


async def version_of(if_match: Annotated[str, Header()] = "*") -> int | None:
    """Return the version that the client has seen; None for any."""
    return version_in(if_match.strip())


ItemsDep: TypeAlias = Annotated[Items, of_app("items")]
WriterDep: TypeAlias = Annotated[Writer, of_app("writer")]
BuffersDep: TypeAlias = Annotated[Buffers, of_app("buffers")]
FeedDep: TypeAlias = Annotated[ChangeFeed, of_app("feed")]
GateDep: TypeAlias = Annotated[Gate, of_app("gate")]
OwnedDep: TypeAlias = Annotated[Owned, Depends(owned_of)]
VersionDep: TypeAlias = Annotated[int | None, Depends(version_of)]
FencingToken: TypeAlias = Annotated[int | None, Header()]
router = store_router(tags=["items"])
buffers = store_router(prefix="/v1/buffers", tags=["namespaces"])
changes = store_router(tags=["changes"])


@router.post("/items")
async def add(request: StoreAdd, writer: WriterDep) -> StoreAddResult:
    return await writer.add(request)


@router.post("/items/batch")
async def add_batch(request: StoreBatch, writer: WriterDep) -> BatchResult:
    return await writer.add_batch(request.adds, began=request.began)


@router.get("/items")
async def page(query: Annotated[ItemsQuery, Query()], items: ItemsDep) -> ItemPage:
    view = View(latest_only=query.latest_only, include_raw=query.include_raw, as_of=query.as_of)
    return await items.page(query, view=view, limit=query.limit, cursor=query.cursor)


@router.post("/items/list")
async def listing(request: StoreList, items: ItemsDep) -> Listing:
    return await items.listing(request)


@router.post("/items/neighbours")
async def neighbours(request: StoreNeighbours, writer: WriterDep) -> Neighbours:
    return await writer.neighbours(request)


@router.get("/entities")
async def entities(scope: Annotated[Scope, Query()], items: ItemsDep) -> Entities:
    return await items.entities(scope)


@router.delete("/namespaces", tags=["namespaces"])
async def erase(
    asked: Annotated[ErasureQuery, Query()], items: ItemsDep, x_fencing_token: FencingToken = None
) -> Erased:
    if asked.dry_run:
        return await items.would_erase(asked)
    return await items.erase(asked, token=x_fencing_token)


@router.get("/items/{item_id}")
async def read(owned: OwnedDep, items: ItemsDep, response: Response) -> MemoryItem:
    item = await items.read(owned)
    response.headers["ETag"] = f'"{item.version}"'
    return item


@router.patch("/items/{item_id}")
async def edit(owned: OwnedDep, patch: ItemPatch, items: ItemsDep, if_version: VersionDep) -> MemoryItem:
    return await items.edit(owned, patch, if_version=if_version)


@router.delete("/items/{item_id}", status_code=204)
async def delete(owned: OwnedDep, items: ItemsDep, if_version: VersionDep) -> None:
    await items.delete(owned, if_version=if_version)


@router.get("/items/{item_id}/history")
async def history(owned: OwnedDep, items: ItemsDep) -> History:
    return await items.history(owned)


@router.post("/items/{item_id}/recover")
async def recover(owned: OwnedDep, items: ItemsDep) -> MemoryItem:
    return await tools.recover(items.tools, owned)


@router.post("/items/{item_id}/feedback")
async def give_feedback(owned: OwnedDep, request: FeedbackRequest, items: ItemsDep) -> MemoryItem:
    return await tools.give_feedback(items.tools, owned, request)


@router.post("/items/export")
async def export(request: StoreExport, items: ItemsDep) -> ExportPage:
    return await transfer.export(items.tools, request)


@router.post("/items/import")
async def take(request: StoreImport, items: ItemsDep) -> Imported:
    return await transfer.take(items.tools, request)


@buffers.get("")
async def buffer_page(
    kept: BuffersDep,
    tenant: Annotated[str, Query(min_length=1, max_length=256)],
    user_id: Annotated[str | None, Query(min_length=1, max_length=256)] = None,
) -> BufferPage:
    return await kept.page(tenant, user_id)


@buffers.get("/idle")
async def idle_buffers(
    kept: BuffersDep, before: AwareDatetime, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> BufferPage:
    return await kept.idle(before, limit=limit)


@buffers.put("")
async def put_buffer(kept: BuffersDep, buffer: Buffer, x_fencing_token: FencingToken = None) -> Buffer:
    return await kept.put(buffer, token=x_fencing_token)


@buffers.delete("", status_code=204)
async def clear_buffer(
    kept: BuffersDep, namespace: Annotated[Namespace, Query()], x_fencing_token: FencingToken = None
) -> None:
    await kept.clear(namespace, token=x_fencing_token)


@changes.post("/changes")
async def change_page(request: StoreChanges, feed: FeedDep) -> ChangePage:
    return await feed.page(request)


@changes.post("/changes/newest")
async def newest_changes(request: AskNewest, feed: FeedDep) -> Newest:
    return await feed.newest(request.tenants)
