"""The routes of what the state room keeps for the store: buffers of turns, and the feed of changes."""

from functools import partial
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Header, Query
from pydantic import AwareDatetime

from memloop.wire.changes import AskNewest, ChangePage, Newest, StoreChanges
from memloop.wire.memory import Buffer, BufferPage, Namespace
from memloop_state.store.buffers import Buffers
from memloop_state.store.feed import ChangeFeed

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
