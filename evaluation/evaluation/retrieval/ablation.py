"""Measures recall@k from evidence IDs without a language model: the store's own search over raw turns, per boost."""

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from evaluation.retrieval.conversations import ASKED_AT, Conversation, Kind, conversation
from evaluation.retrieval.embedding_cache import CachedEmbedder
from memloop.wire.feedback import Feedback
from memloop.wire.memory import MemoryItem, Namespace, StoreSearch
from memloop_service import new_registry
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from memory_store.items.batch import points_of
from memory_store.items.documents import Record
from memory_store.items.identity import content_hash
from memory_store.metrics import Metrics
from memory_store.retrieval.relevance import PLAIN, Tuning
from memory_store.retrieval.search import Retrieval
from memory_store.times.reading import times_in
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec
from trainer.data.dialogues.dialogue import Turn

REPORTED_ON = tuple(range(200, 210))
"""Held out from tuning: seeds 100 to 109 decided which boosts are on."""
K = 10
_TENANT = "recall"
_DIMENSION = 384
_ALL, _PRAISED, _OTHERS = slice(None), slice(0, None, 2), slice(1, None, 2)
_HELPFUL = Feedback(verdict="helpful", at=ASKED_AT)

FULL = Tuning()
_PARTS: Mapping[str, Sequence[str]] = {
    "neighbours": ("beside", "near"),
    "session": ("session",),
    "speaker": ("speaker",),
    "date": ("date",),
    "asking": ("asking",),
}


def variants() -> dict[str, Tuning]:
    """Return the settings of every row of the ablation."""
    rows = {
        "dense": replace(PLAIN, sparse=0.0),
        "bm25": replace(PLAIN, dense=0.0),
        "plain": PLAIN,
        "full": FULL,
    }
    for name, fields in _PARTS.items():
        rows[f"plain + {name}"] = replace(PLAIN, **{field: getattr(FULL, field) for field in fields})
        rows[f"full - {name}"] = replace(FULL, **dict.fromkeys(fields, 0.0))
    return rows


@dataclass(frozen=True, slots=True)
class Row:
    """A variant's recall in percent: per seed, and per kind of question."""

    name: str
    by_seed: Sequence[float]
    by_kind: Mapping[Kind, float]

    @property
    def mean(self) -> float:
        """Average over the seeds."""
        return statistics.fmean(self.by_seed)


def interval(values: Sequence[float]) -> float:
    """Return half the width of a 95 % interval of the mean (normal)."""
    return 1.96 * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


class Haystack:
    """Conversations in their own store."""

    def __init__(self, vectors: QdrantEdge, encoding: TextEncoding, talks: Sequence[Conversation]) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._talks = talks
        self._metrics = Metrics(new_registry())

    async def fill(self) -> None:
        """Store every turn as a raw turn."""
        for talk in self._talks:
            records = [raw_turn(talk.name, turn, number) for number, turn in enumerate(talk.turns)]
            await self._vectors.upsert(await points_of(records, self._encoding))

    async def praise(self) -> None:
        """Call the answers to every other question helpful."""
        for talk in self._talks:
            helpful = {key for question in talk.questions[_PRAISED] for key in question.evidence}
            records = [raw_turn(talk.name, turn, number) for number, turn in enumerate(talk.turns)]
            praised = [one.with_item(feedback=_HELPFUL) for one in records if one.item.key in helpful]
            await self._vectors.upsert(await points_of(praised, self._encoding))

    async def row(self, name: str, tuning: Tuning, asked: slice = _ALL) -> Row:
        """Measure one variant over these questions of each conversation."""
        retrieval = Retrieval(
            self._vectors, self._encoding, metrics=self._metrics, clock=lambda: ASKED_AT, tuning=tuning
        )
        by_seed: list[float] = []
        by_kind: dict[Kind, list[float]] = {}
        for talk in self._talks:
            recalls: list[float] = []
            for question in talk.questions[asked]:
                recall = await _recall(retrieval, talk, question.text, question.evidence)
                recalls.append(recall)
                by_kind.setdefault(question.kind, []).append(recall)
            by_seed.append(100 * statistics.fmean(recalls))
        return Row(name, by_seed, {kind: 100 * statistics.fmean(found) for kind, found in by_kind.items()})


async def run(rows: Mapping[str, Tuning], *, seeds: Sequence[int], cache: Path) -> list[Row]:
    """Measure all rows on the conversations of the seeds."""
    embedder = CachedEmbedder(cache)
    with tempfile.TemporaryDirectory(prefix="memloop-recall-") as folder:
        vectors = QdrantEdge(Path(folder), flush_s=3600.0)
        await vectors.open(CollectionSpec(DEFAULT_MODEL, _DIMENSION))
        haystack = Haystack(vectors, TextEncoding(embedder, Bm25()), [conversation(seed) for seed in seeds])
        await haystack.fill()
        found = [await haystack.row(name, tuning) for name, tuning in rows.items()]
        found += await _with_feedback(haystack)
        await vectors.close()
    embedder.save()
    return found


async def _with_feedback(haystack: Haystack) -> list[Row]:
    """Measure what praise of half of the answers does to their questions, and to all others."""
    halves = (("praised", _PRAISED), ("others", _OTHERS))
    before = [await haystack.row(f"full, {name}: no feedback", FULL, asked) for name, asked in halves]
    await haystack.praise()
    after = [await haystack.row(f"full, {name}: half helpful", FULL, asked) for name, asked in halves]
    return [row for pair in zip(before, after, strict=True) for row in pair]


async def _recall(retrieval: Retrieval, talk: Conversation, question: str, evidence: Sequence[str]) -> float:
    """Return the share of the evidence among the first ``K`` results."""
    namespace = namespace_of(talk.name)
    asked = StoreSearch(namespace=namespace, query=question, top_k=K, include_raw=True)
    found = {hit.item.key for hit in (await retrieval.search(asked)).results}
    return sum(key in found for key in evidence) / len(evidence)


def namespace_of(name: str) -> Namespace:
    """Return the namespace of a conversation's turns."""
    return Namespace(tenant=_TENANT, user_id=name)


def raw_turn(name: str, turn: Turn, number: int) -> Record:
    """Build the raw-turn record of a conversation's turn number so many."""
    namespace = namespace_of(name)
    arrived_at = turn.said_at + timedelta(microseconds=number)
    item = MemoryItem(
        id=_uuid(name, turn),
        memory=turn.text,
        key=turn.id,
        memory_type="RawTurn",
        tags=(turn.speaker,),
        user_id=namespace.user_id,
        valid_from=turn.said_at,
        created_at=arrived_at,
        updated_at=arrived_at,
        hash=content_hash(turn.text),
        times=times_in(turn.text, turn.said_at),
    )
    return Record(namespace.tenant, item, item.id, confirmed_at=turn.said_at)


def _uuid(name: str, turn: Turn) -> str:
    digest = content_hash(f"{name} {turn.id}")
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
