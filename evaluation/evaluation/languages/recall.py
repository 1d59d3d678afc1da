"""Measures recall of the same made-up facts in several languages, each the memories of a user of its own.

Each fact has two questions: one with other forms of its words, and one that shares no word with it, which meaning alone
can find. Statements about other things compete.
"""

import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, TypeAlias, get_args

from memloop.wire.memory import MemoryItem, Namespace, StoreSearch
from memloop_service import new_registry
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.embedding.port import Embedder
from memory_store.items.batch import points_of
from memory_store.items.documents import Record
from memory_store.metrics import Metrics
from memory_store.retrieval.relevance import Tuning
from memory_store.retrieval.search import Retrieval
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec

LANGUAGES: Final = ("en", "de", "es", "fr", "ru", "zh", "ja", "ko")
K: Final = 10
_TENANT: Final = "evaluate-languages"
_STATED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)

Kind: TypeAlias = Literal["inflected", "paraphrased"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact with the questions that it answers; a statement that only competes has none."""

    id: str
    language: str
    text: str
    questions: Mapping[Kind, str]


def facts(language: str) -> list[Fact]:
    """Read a language's facts; the same number is the same fact in every language."""
    lines = (files("evaluation.languages") / "texts" / f"{language}.txt").read_text("utf-8").splitlines()
    return [
        Fact(
            id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{language}/{number}")),
            language=language,
            text=text,
            questions=dict(zip(KINDS, asked, strict=True)) if asked else {},
        )
        for number, (text, *asked) in enumerate(line.split(" | ") for line in lines)
    ]


async def recall(embedder: Embedder, dimension: int, *, tuning: Tuning, bm25: Bm25) -> dict[Kind, dict[str, float]]:
    """Return the share of questions, by kind and language, whose fact is among the first ``K`` results, in percent."""
    with tempfile.TemporaryDirectory(prefix="memloop-languages-") as folder:
        vectors = QdrantEdge(Path(folder), flush_s=3600.0)
        await vectors.open(CollectionSpec("languages", dimension))
        encoding = TextEncoding(embedder, bm25)
        for language in LANGUAGES:
            await vectors.upsert(await points_of([_record(fact) for fact in facts(language)], encoding))
        retrieval = Retrieval(vectors, encoding, metrics=Metrics(new_registry()), tuning=tuning)
        found: dict[Kind, dict[str, float]] = {
            kind: {language: await _found(retrieval, facts(language), kind) for language in LANGUAGES} for kind in KINDS
        }
        await vectors.close()
    return found


async def _found(retrieval: Retrieval, known: Sequence[Fact], kind: Kind) -> float:
    asked = [(fact, fact.questions[kind]) for fact in known if fact.questions]
    return 100 * fmean([fact.id in await _ids(retrieval, fact.language, question) for fact, question in asked])


async def _ids(retrieval: Retrieval, language: str, question: str) -> Iterable[str]:
    namespace = Namespace(tenant=_TENANT, user_id=language)
    result = await retrieval.search(StoreSearch(namespace=namespace, query=question, top_k=K))
    return {hit.item.id for hit in result.results}


def _record(fact: Fact) -> Record:
    item = MemoryItem(
        id=fact.id,
        memory=fact.text,
        key=fact.text,
        memory_type="LongTermMemory",
        user_id=fact.language,
        valid_from=_STATED_AT,
        created_at=_STATED_AT,
        updated_at=_STATED_AT,
        hash=fact.id,
    )
    return Record(_TENANT, item, chain=fact.id, confirmed_at=_STATED_AT)
