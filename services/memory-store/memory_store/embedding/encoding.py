"""Texts to the two vectors that are stored and searched."""

from collections.abc import Sequence

from memory_store.embedding.embedder import Embedder, Vector
from memory_store.embedding.sparse import Bm25
from memory_store.vectors.port import SparseVector


class TextEncoding:
    """A dense embedder and BM25 side by side."""

    def __init__(self, embedder: Embedder, bm25: Bm25) -> None:
        self._embedder = embedder
        self._bm25 = bm25

    def use(self, embedder: Embedder) -> None:
        """Embed with another model from now on."""
        self._embedder = embedder

    async def documents(self, texts: Sequence[str]) -> list[tuple[Vector, SparseVector]]:
        """Returns the dense and sparse vector of each text, embedded in one call."""
        dense = await self._embedder.embed(texts)
        return [(vector, self._bm25.document(text)) for text, vector in zip(texts, dense, strict=True)]

    async def query(self, text: str) -> tuple[Vector, SparseVector]:
        """A query's dense and sparse vector."""
        return (await self._embedder.embed([text]))[0], self._bm25.query(text)

    def marked_words(self, text: str) -> frozenset[str]:
        """The numbers and negations of a text: where they differ, similar sentences say different things."""
        terms = self._bm25.terms(text)
        return frozenset(term for term in terms if term in _NEGATIONS or any(char.isdigit() for char in term))


_NEGATIONS = frozenset(("no", "not", "never", "none", "without", "cannot", "t"))
