"""Measures recall of the same made-up facts in several languages, all in one namespace.

A question has other words, or other forms of them, than the fact that answers it. Facts of all languages compete.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Final

from memloop.wire.memory import MemoryItem, Namespace, StoreSearch
from memloop_service import new_registry
from memory_store.embedding.embedder import Embedder
from memory_store.embedding.encoding import TextEncoding
from memory_store.embedding.sparse import Bm25
from memory_store.items.documents import Record
from memory_store.items.points import points_of
from memory_store.metrics import Metrics
from memory_store.retrieval import Retrieval, Tuning
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec

LANGUAGES: Final = ("en", "de", "es", "fr", "ru", "zh", "ja", "ko")
K: Final = 10
_NAMESPACE: Final = Namespace(tenant="evaluate-languages", user_id="u")
_STATED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact with the question that it answers."""

    id: str
    language: str
    text: str
    question: str


def facts(language: str) -> list[Fact]:
    """Read a language's facts; the same number is the same fact in every language."""
    lines = (files("evaluation.languages") / "texts" / f"{language}.txt").read_text("utf-8").splitlines()
    pairs = [line.split(" | ") for line in lines]
    number_of = LANGUAGES.index(language)
    return [
        Fact(f"00000000-0000-4000-8000-{number_of:06}{number:06}", language, text, question)
        for number, (text, question) in enumerate(pairs)
    ]


async def recall(embedder: Embedder, dimension: int, *, tuning: Tuning, bm25: Bm25) -> dict[str, float]:
    """Return the share of questions, by language, whose own fact is among the first ``K`` results, in percent."""
    known = [fact for language in LANGUAGES for fact in facts(language)]
    with tempfile.TemporaryDirectory(prefix="memloop-languages-") as folder:
        vectors = QdrantEdge(Path(folder), flush_s=3600.0)
        await vectors.open(CollectionSpec("languages", dimension))
        encoding = TextEncoding(embedder, bm25)
        await vectors.upsert(await points_of([_record(fact) for fact in known], encoding))
        retrieval = Retrieval(vectors, encoding, metrics=Metrics(new_registry()), tuning=tuning)
        found = {language: await _found(retrieval, facts(language)) for language in LANGUAGES}
        await vectors.close()
    return found


async def _found(retrieval: Retrieval, asked: Sequence[Fact]) -> float:
    return 100 * fmean([fact.id in await _ids(retrieval, fact.question) for fact in asked])


async def _ids(retrieval: Retrieval, question: str) -> Iterable[str]:
    result = await retrieval.search(StoreSearch(namespace=_NAMESPACE, query=question, top_k=K))
    return {hit.item.id for hit in result.results}


def _record(fact: Fact) -> Record:
    item = MemoryItem(
        id=fact.id,
        memory=fact.text,
        key=fact.text,
        memory_type="LongTermMemory",
        user_id=_NAMESPACE.user_id,
        valid_from=_STATED_AT,
        created_at=_STATED_AT,
        updated_at=_STATED_AT,
        hash=fact.id,
    )
    return Record(_NAMESPACE.tenant, item, chain=fact.id, confirmed_at=_STATED_AT)
