"""Routes of the change feed."""

from functools import partial

from fastapi import APIRouter

from memloop.wire.changes import AskNewest, ChangePage, Newest, StoreChanges
from memloop_state.store.feed import ChangeFeed


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
