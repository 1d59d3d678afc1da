"""The search route."""

from fastapi import APIRouter

from memloop.wire.memory import SearchResult, StoreSearch
from memloop_service.direct_route import DirectRoute
from memory_store.retrieval.search import Retrieval
from memory_store.vectors.gate import Gate


def search_routes(retrieval: Retrieval, gate: Gate) -> APIRouter:
    """``POST /items/search``, which waits while another collection is put in service."""
    router = APIRouter(tags=["items"], route_class=DirectRoute)

    @router.post("/items/search")
    async def search(request: StoreSearch) -> SearchResult:
        async with gate.shared():
            return await retrieval.search(request)

    _ = search
    return router
