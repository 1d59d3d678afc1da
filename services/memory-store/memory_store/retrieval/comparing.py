"""The route that compares texts by the embedding model in service. Nothing of them is stored."""

from functools import partial

from fastapi import APIRouter

from memloop.wire.similarity import Similarities, StoreSimilarities
from memory_store.embedding.encoding import TextEncoding


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
