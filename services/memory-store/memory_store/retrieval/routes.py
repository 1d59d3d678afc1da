"""The routes of search and of comparing texts by the embedding model in service."""

from typing import Annotated

from memloop.wire.errors import Unavailable
from memloop.wire.memory import PendingTurn, Scope, SearchResult, StoreSearch
from memloop.wire.store_requests import Similarities, StoreSimilarities
from memloop_service import of_app
from memloop_service.chores import beside
from memloop_state.store.buffers import Buffers
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.routes import BuffersDep, GateDep, store_router
from memory_store.retrieval.search import Retrieval


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


router = store_router(tags=["items"])


@router.post("/items/search")
async def search(
    request: StoreSearch, retrieval: Annotated[Retrieval, of_app("retrieval")], gate: GateDep, buffers: BuffersDep
) -> SearchResult:
    async with gate.shared():  # waits while another collection is put in service
        if not request.include_buffered:
            return await retrieval.search(request)
        # before the memories: a turn leaves its buffer only after they are stored
        async with beside(buffered_turns(buffers, request.namespace)) as reading:
            found, turns = await retrieval.search(request, after=reading), await reading
        return found.model_copy(update={"pending": turns or (), "pending_complete": turns is not None})


@router.post("/similarities")
async def similarities(
    request: StoreSimilarities, encoding: Annotated[TextEncoding, of_app("encoding")]
) -> Similarities:
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
