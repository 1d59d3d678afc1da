"""Texts to the two vectors that are stored and searched."""

from collections.abc import Sequence

from memory_store.documents import Record, to_payload
from memory_store.embedder import Embedder, Vector
from memory_store.sparse import Bm25
from memory_store.vectors.port import Point, SparseVector


class TextEncoding:
    """A dense embedder and BM25 side by side."""

    def __init__(self, embedder: Embedder, bm25: Bm25) -> None:
        self._embedder = embedder
        self._bm25 = bm25

    def use(self, embedder: Embedder) -> None:
        """Embed with another model from now on."""
        self._embedder = embedder

    async def points(self, records: Sequence[Record]) -> list[Point]:
        """The records as points, embedded in one call."""
        texts = [record.embedded_text for record in records]
        vectors = await self._embedder.embed(texts)
        return [
            Point(record.item.id, vector, self._bm25.document(text), to_payload(record))
            for record, text, vector in zip(records, texts, vectors, strict=True)
        ]

    async def query(self, text: str) -> tuple[Vector, SparseVector]:
        """A query's dense and sparse vector."""
        return (await self._embedder.embed([text]))[0], self._bm25.query(text)

    def words(self, text: str) -> SparseVector:
        """A query's sparse vector alone."""
        return self._bm25.query(text)

    def marked_words(self, text: str) -> frozenset[str]:
        """The numbers and negations of a text: where they differ, similar sentences say different things."""
        terms = self._bm25.terms(text)
        return frozenset(term for term in terms if term in _NEGATIONS or any(char.isdigit() for char in term))


_NEGATIONS = frozenset(("no", "not", "never", "none", "without", "cannot", "t"))
