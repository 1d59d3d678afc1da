"""The routes of search and of comparing texts by the embedding model in service."""

from functools import partial

from fastapi import APIRouter

from memloop.wire.errors import Unavailable
from memloop.wire.memory import PendingTurn, Scope, SearchResult, StoreSearch
from memloop.wire.similarity import Similarities, StoreSimilarities
from memloop_service.chores import beside
from memloop_state.store.buffers import Buffers
from memory_store.embedding.encoding import TextEncoding
from memory_store.retrieval.search import Retrieval
from memory_store.vectors.live import Gate


async def buffered_turns(buffers: Buffers, scope: Scope) -> tuple[PendingTurn, ...] | None:
    """Return the scope's buffered turns: empty without a user, None while the state cannot be reached."""
    if scope.user_id is None:
        return ()
    try:
        page = await buffers.page(scope.tenant, scope.user_id)
    except Unavailable:
        return None
    return tuple(
        PendingTurn(
            status="buffered",
            event_id=buffer.event_id,
            role=turn.role,
            content=turn.content,
            timestamp=turn.timestamp or buffer.updated_at,
            user_id=space.user_id,
            agent_id=space.agent_id,
            run_id=space.run_id,
            name=turn.name,
        )
        for buffer in page.buffers
        if scope.agent_id in (None, (space := buffer.namespace).agent_id) and scope.run_id in (None, space.run_id)
        for turn in buffer.turns
    )


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


def similarity_routes(new_router: partial[APIRouter], encoding: TextEncoding) -> APIRouter:
    """``POST /similarities``."""
    router = new_router(tags=["items"])

    @router.post("/similarities")
    async def similarities(request: StoreSimilarities) -> Similarities:
        texts = list(dict.fromkeys(text for each in request.comparisons for text in (each.statement, *each.passages)))
        vectors = dict(zip(texts, await encoding.compared(texts), strict=True))
        return Similarities(
            similarities=tuple(
                tuple(
                    sum(a * b for a, b in zip(vectors[each.statement], vectors[passage], strict=True))
                    for passage in each.passages
                )
                for each in request.comparisons
            )
        )

    _ = similarities
    return router
