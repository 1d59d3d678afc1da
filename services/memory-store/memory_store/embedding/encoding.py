"""Texts to the two vectors that are stored and searched."""

import asyncio
import logging
from collections.abc import Sequence

from memloop.wire.errors import DependencyError
from memory_store.embedding.embedder import Embedder
from memory_store.embedding.sparse import Bm25
from memory_store.embedding.waiting import Vector
from memory_store.vectors.port import SparseVector

_QUICK_CHARS = 1024
"""Shorter texts are stemmed on the event loop, in under 5 ms; longer ones in a thread."""
_log = logging.getLogger(__name__)
_NEGATIONS = frozenset(("no", "not", "never", "none", "without", "cannot", "t"))


class TextEncoding:
    """A dense embedder and BM25 side by side."""

    def __init__(self, embedder: Embedder, bm25: Bm25) -> None:
        self._embedder = embedder
        self._bm25 = bm25
        self._stemming = asyncio.Lock()
        self._fails = False

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

    async def query(self, text: str) -> tuple[Vector | None, SparseVector]:
        """Returns a query's dense and sparse vector; None for the dense one if the embedding model fails."""
        dense = await self._dense_query(text)
        if len(text) <= _QUICK_CHARS:
            return dense, self._bm25.query(text)
        async with self._stemming:
            return dense, await asyncio.to_thread(self._bm25.query, text)

    async def dense(self, text: str) -> Vector:
        """Returns the dense vector of a text that is compared with stored ones. Raises ``DependencyError``."""
        [vector] = await self._embedder.embed([text])
        return vector

    async def compared(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Returns the dense vectors of texts that are compared with each other. Raises ``DependencyError``."""
        return await self._embedder.embed(texts)

    async def _dense_query(self, text: str) -> Vector | None:
        """Logs the first of several failures, and their end."""
        try:
            vector = await self._embedder.embed_query(text)
        except DependencyError as error:
            if not self._fails:
                _log.warning("searches go by words alone: %s", error.message)
            self._fails = True
            return None
        if self._fails:
            _log.info("searches go by meaning again")
        self._fails = False
        return vector

    def terms(self, text: str) -> list[str]:
        """Returns a text's stemmed words in order, without function words."""
        return list(self._bm25.terms(text))

    def marked_words(self, text: str) -> frozenset[str]:
        """Returns a text's numbers and negations: where they differ, similar sentences say different things."""
        terms = self._bm25.terms(text)
        return frozenset(term for term in terms if term in _NEGATIONS or any(char.isdigit() for char in term))
