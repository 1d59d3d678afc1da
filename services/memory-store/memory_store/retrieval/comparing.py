"""The route that compares texts by the embedding model in service. Nothing of them is stored."""

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter

from memloop.wire.similarity import Comparison, Similarities, StoreSimilarities
from memory_store.embedding.encoding import TextEncoding
from memory_store.embedding.vector_cache import Vector


def similarity_routes(new_router: partial[APIRouter], encoding: TextEncoding) -> APIRouter:
    """``POST /similarities``."""
    router = new_router(tags=["items"])

    @router.post("/similarities")
    async def similarities(request: StoreSimilarities) -> Similarities:
        return Similarities(similarities=await _compared(request.comparisons, encoding))

    _ = similarities
    return router


async def _compared(comparisons: Sequence[Comparison], encoding: TextEncoding) -> tuple[tuple[float, ...], ...]:
    texts = list(dict.fromkeys(text for each in comparisons for text in (each.statement, *each.passages)))
    vectors = dict(zip(texts, await encoding.compared(texts), strict=True))
    return tuple(
        tuple(_cosine(vectors[each.statement], vectors[passage]) for passage in each.passages) for each in comparisons
    )


def _cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
