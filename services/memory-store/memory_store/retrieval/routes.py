"""The search route."""

from functools import partial

from fastapi import APIRouter

from memloop.wire.memory import SearchResult, StoreSearch
from memloop_service.chores import beside
from memloop_state.store.buffers import Buffers
from memory_store.buffers.pending import buffered_turns
from memory_store.retrieval.search import Retrieval
from memory_store.vectors.gate import Gate


def search_routes(new_router: partial[APIRouter], retrieval: Retrieval, gate: Gate, buffers: Buffers) -> APIRouter:
    """``POST /items/search``, which waits while another collection is put in service."""
    router = new_router(tags=["items"])

    @router.post("/items/search")
    async def search(request: StoreSearch) -> SearchResult:
        async with gate.shared():
            if not request.include_buffered:
                return await retrieval.search(request)
            # before the memories: a turn leaves its buffer only after they are stored
            async with beside(buffered_turns(buffers, request.namespace)) as reading:
                found, turns = await retrieval.search(request, after=reading), await reading
            return found.model_copy(update={"pending": turns or (), "pending_complete": turns is not None})

    _ = search
    return router
