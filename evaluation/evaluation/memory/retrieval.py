"""Measures recall@k from evidence IDs without a language model: the store's own search over raw turns, in process."""

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from evaluation.memory.records import Recalled
from evaluation.retrieval.ablation import namespace_of, raw_turn
from memloop.scoring.lenient import evidence_recall
from memloop.wire.memory import StoreSearch
from memloop_service import new_registry
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.embedding.port import Embedder
from memory_store.items.batch import points_of
from memory_store.metrics import Metrics
from memory_store.retrieval.search import Retrieval
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec
from trainer.data.dialogues.dialogue import Conversation, Question

KS = (5, 10, 20)
_STEP = 500


class Haystack:
    """The turns of one conversation in their own store. Questions are asked as of their own time."""

    def __init__(self, talk: Conversation, vectors: QdrantEdge, encoding: TextEncoding, metrics: Metrics) -> None:
        self._talk = talk
        self._now: datetime = talk.sessions[-1].began_at
        self._retrieval = Retrieval(vectors, encoding, metrics=metrics, clock=lambda: self._now)

    async def recalled(self, question: Question) -> Recalled:
        """Measure the recall of one question. Raises ValueError without evidence."""
        self._now = self._talk.asked_at(question)
        sessions = {turn.id: session.id for session in self._talk.sessions for turn in session.turns}
        held = {sessions[turn] for turn in question.evidence}
        turns_at: dict[str, float] = {}
        sessions_at: dict[str, float] = {}
        for k in KS:
            found = await self._found(question.text, k)
            turns_at[str(k)] = evidence_recall(found, question.evidence)
            sessions_at[str(k)] = evidence_recall([sessions[turn] for turn in found], held)
        return Recalled(self._talk.id, question.id, question.categories, turns_at, sessions_at)

    async def _found(self, query: str, k: int) -> Sequence[str]:
        asked = StoreSearch(namespace=namespace_of(self._talk.id), query=query, top_k=k, include_raw=True)
        return [hit.item.key for hit in (await self._retrieval.search(asked)).results]


@asynccontextmanager
async def haystack(talk: Conversation, embedder: Embedder, *, dimension: int) -> AsyncGenerator[Haystack]:
    """Embed and store the conversation; its files are deleted on exit."""
    metrics = Metrics(new_registry())
    with tempfile.TemporaryDirectory(prefix="memloop-recall-") as folder:
        vectors = QdrantEdge(Path(folder), flush_s=3600.0)
        await vectors.open(CollectionSpec("evaluation", dimension))
        try:
            encoding = TextEncoding(embedder, Bm25())
            records = [raw_turn(talk.id, turn, number) for number, turn in enumerate(talk.turns) if turn.text.strip()]
            for start in range(0, len(records), _STEP):
                await vectors.upsert(await points_of(records[start : start + _STEP], encoding))
            yield Haystack(talk, vectors, encoding, metrics)
        finally:
            await vectors.close()
