"""The lower bound of a search: the query's embedding and one vector query, in this process.

With the store's own encoder, a bound that our searches cannot beat; and with the model as its library runs it, which a
hand-written search would use.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import qdrant_edge as edge
from sentence_transformers import SentenceTransformer

from benchmarks.memory.corpus import Rows, fact, user_of
from memory_store.embedding.port import Encoder, Vector
from memory_store.embedding.sentence_encoder import model_source

_STEP = 1000
_LIMIT = 10


class LibraryEncoder:
    """The model as sentence-transformers, and so mem0, runs it: torch, float32, torch's default threads."""

    def __init__(self, model: str) -> None:
        self._model = SentenceTransformer(model_source(model), device="cpu")

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return unit vectors."""
        found = self._model.encode(  # pyright: ignore[reportUnknownMemberType]
            list(texts), normalize_embeddings=True, show_progress_bar=False
        )
        return [tuple(row) for row in found.tolist()]


class Floor:
    """The store's engine without our code: one dense vector and its user, no other payload index."""

    def __init__(self, folder: Path, *, dimension: int) -> None:
        folder.mkdir(parents=True)
        config = edge.EdgeConfig(
            vectors={"": edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)}, max_search_threads=1
        )
        self._shard = edge.EdgeShard.create(str(folder), config)
        self._shard.update(edge.UpdateOperation.create_field_index("user_id", edge.KeywordIndexParams(is_tenant=True)))
        self._count = 0

    def grow(self, rows: Rows) -> None:
        """Insert the missing rows."""
        for start in range(self._count, len(rows), _STEP):
            points = [_point(number, rows) for number in range(start, min(start + _STEP, len(rows)))]
            self._shard.update(edge.UpdateOperation.upsert_points(points))
        self._count = len(rows)

    def search_ms(self, questions: Sequence[tuple[str, str]], encoder: Encoder) -> list[float]:
        """Measure each (user, question)."""
        return [self._timed(user, question, encoder) for user, question in questions]

    def close(self) -> None:
        """Release the files."""
        self._shard.close()

    def _timed(self, user: str, question: str, encoder: Encoder) -> float:
        began = time.perf_counter()
        [vector] = encoder.encode([question])
        owner = edge.Filter(must=[edge.FieldCondition("user_id", match=edge.MatchValue(user))])
        nearest = edge.Query.Nearest(list(vector))
        self._shard.query(edge.QueryRequest(limit=_LIMIT, query=nearest, filter=owner, with_payload=True))
        return 1000 * (time.perf_counter() - began)


def _point(number: int, rows: Rows) -> edge.Point:
    vector = cast("list[float]", rows[number].tolist())
    return edge.Point(number, vector, {"user_id": user_of(number), "memory": fact(number)})
