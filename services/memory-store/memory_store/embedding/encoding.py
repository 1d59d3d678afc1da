"""Texts to the two vectors that are stored and searched."""

import asyncio
from collections.abc import Sequence

from memory_store.embedding.embedder import Embedder, Vector
from memory_store.embedding.sparse import Bm25
from memory_store.vectors.port import SparseVector

_QUICK_CHARS = 1024
"""Shorter texts are stemmed on the event loop, in under 5 ms; longer ones in a thread."""
_NEGATIONS = frozenset(("no", "not", "never", "none", "without", "cannot", "t"))


class TextEncoding:
    """A dense embedder and BM25 side by side."""

    def __init__(self, embedder: Embedder, bm25: Bm25) -> None:
        self._embedder = embedder
        self._bm25 = bm25
        self._stemming = asyncio.Lock()

    def use(self, embedder: Embedder) -> None:
        """Embeds with another model from now on."""
        self._embedder = embedder

    async def documents(self, texts: Sequence[str]) -> list[tuple[Vector, SparseVector]]:
        """Returns the dense and sparse vector of each text, embedded in one call."""
        dense = await self._embedder.embed(texts)
        if sum(map(len, texts)) <= _QUICK_CHARS:
            return list(zip(dense, map(self._bm25.document, texts), strict=True))
        async with self._stemming:
            sparse = await asyncio.to_thread(lambda: [self._bm25.document(text) for text in texts])
        return list(zip(dense, sparse, strict=True))

    async def query(self, text: str) -> tuple[Vector, SparseVector]:
        """Returns a query's dense and sparse vector."""
        [dense] = await self._embedder.embed([text])
        if len(text) <= _QUICK_CHARS:
            return dense, self._bm25.query(text)
        async with self._stemming:
            return dense, await asyncio.to_thread(self._bm25.query, text)

    def marked_words(self, text: str) -> frozenset[str]:
        """Returns a text's numbers and negations: where they differ, similar sentences say different things."""
        terms = self._bm25.terms(text)
        return frozenset(term for term in terms if term in _NEGATIONS or any(char.isdigit() for char in term))
