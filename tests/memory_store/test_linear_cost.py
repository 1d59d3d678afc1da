"""Twice the input costs at most 2.6 times the processor time: nothing a client sends makes the store quadratic."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from pydantic import JsonValue

from memloop.wire.memory import MemoryDraft, Namespace, StoreAdd
from memloop_service import new_registry
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.items.batch import Batch
from memory_store.items.identity import check_metadata, flags_of
from memory_store.items.statements import WritePolicy, statements_of
from memory_store.items.writing import Resolver
from memory_store.metrics import Metrics
from memory_store.retrieval.relevance import Candidate, boost_dates
from memory_store.times.reading import asked_for
from memory_store.vectors.filters import parse_filters
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.embedder import HashingEncoder

_MOST = 2.6
_REPEATS = 5
_NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
_ALICE = Namespace(tenant="t", user_id="alice")


def cpu_s(work: Callable[[int], object], size: int) -> float:
    """The least processor time of this thread: other load on the machine only ever adds."""
    times: list[float] = []
    for _ in range(_REPEATS):
        began = time.thread_time()
        work(size)
        times.append(time.thread_time() - began)
    return min(times)


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times more processor time twice the size takes; the best of three looks, for a busy machine."""
    work(size)
    return min(cpu_s(work, 2 * size) / cpu_s(work, size) for _ in range(3))


def document(words: int) -> object:
    return Bm25().document(" ".join(f"wandering{number}ly" for number in range(words)))


def months_that_are_verbs(words: int) -> object:
    return boost_dates([candidate(0)], asked_for("may " * words, _NOW), 0.3)


def days(number: int) -> object:
    question = " ".join(f"2025-{1 + day % 12:02}-{1 + day % 28:02}" for day in range(number))
    return boost_dates([candidate(n) for n in range(number // 4)], asked_for(question, _NOW), 0.3)


def candidate(number: int) -> Candidate:
    return Candidate(str(number), {"valid_from": "2019-01-01T00:00:00+00:00"})


def conditions(number: int) -> object:
    return [parse_filters({"OR": [{"tags": {"ne": f"tag {at}"}} for at in range(number)]}) for _ in range(50)]


def metadata(leaves: int) -> object:
    flags: dict[str, JsonValue] = {f"key {leaf}": leaf % 2 == 0 for leaf in range(leaves)}
    fields: dict[str, JsonValue] = {"a": {"b": flags}}
    check_metadata(fields)
    return flags_of(fields)


@pytest.mark.parametrize(
    ("work", "size"),
    [
        pytest.param(document, 1500, id="stemming and sparse encoding"),
        pytest.param(months_that_are_verbs, 4000, id="boosts: words that may be months"),
        pytest.param(days, 600, id="boosts: days over candidates"),
        pytest.param(conditions, 90, id="filters"),
        pytest.param(metadata, 450, id="metadata"),
    ],
)
def test_twice_the_input_costs_twice(work: Callable[[int], object], size: int) -> None:
    assert growth(work, size) <= _MOST


def test_twice_the_statements_of_a_batch_cost_twice(tmp_path: Path) -> None:
    metrics = Metrics(new_registry())
    encoding = TextEncoding(BatchingEmbedder(HashingEncoder, metrics=metrics), Bm25())
    resolver = Resolver(QdrantEdge(tmp_path, flush_s=60), encoding, similarity=None)

    async def apply(number: int) -> None:
        drafts = [MemoryDraft(key=f"key {at}", value=f"value {at}") for at in range(number)]
        adds = [
            StoreAdd(namespace=_ALICE, drafts=tuple(drafts[at : at + 100]), event_id=f"event {at}")
            for at in range(0, number, 100)
        ]
        batch = Batch(_ALICE, (), written_at=_NOW)
        for statement in [
            one for add in adds for one in statements_of(add, written_at=_NOW, policy=WritePolicy(), arrivals=count())
        ]:
            assert batch.records.earlier_outcome(statement.write) is None
            batch.apply(statement, await resolver.resolve(statement, batch))

    assert growth(lambda number: asyncio.run(apply(number)), 400) <= _MOST
