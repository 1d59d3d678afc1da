"""Writes facts into a store's folder before it starts, through its own adapter: embedding 100,000 texts is too slow."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import cast

from benchmarks.memory.corpus import USERS, Rows, fact, user_of
from memloop.wire.memory import MemoryDraft, MemoryItem, Namespace, StoreAdd
from memory_store.embedding.encoding import Bm25
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from memory_store.items.documents import Record, now, to_payload
from memory_store.items.identity import version_id
from memory_store.items.statements import WritePolicy, statements_of
from memory_store.vectors.port import Point
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec

_STEP = 500


async def load(folder: Path, rows: Rows, *, tenant: str) -> None:
    """Write the first facts as the store would."""
    vectors = QdrantEdge(folder, flush_s=3600.0)
    await vectors.open(CollectionSpec(DEFAULT_MODEL, rows.shape[1]))
    for start in range(0, len(rows), _STEP):
        await vectors.upsert(points(range(start, min(start + _STEP, len(rows))), rows, tenant=tenant))
    await vectors.close()


def points(numbers: Iterable[int], rows: Rows, *, tenant: str, users: int = USERS) -> list[Point]:
    """Return these facts as the store keeps them."""
    words = Bm25()
    return [
        _point(number, rows, Namespace(tenant=tenant, user_id=user_of(number, users=users)), words)
        for number in numbers
    ]


def _point(number: int, rows: Rows, namespace: Namespace, words: Bm25) -> Point:
    moment, text = now(), fact(number)
    add = StoreAdd(namespace=namespace, drafts=(MemoryDraft(key=text, value=text),))
    [statement] = statements_of(add, written_at=moment, policy=WritePolicy(), arrivals=count())
    item = MemoryItem(
        id=version_id(statement.chain, statement.value_hash, 1),
        memory=text,
        key=text,
        memory_type="LongTermMemory",
        user_id=namespace.user_id,
        valid_from=moment,
        created_at=moment,
        updated_at=moment,
        hash=statement.value_hash,
    )
    record = Record(namespace.tenant, item, statement.chain, confirmed_at=moment)
    dense = tuple(cast("list[float]", rows[number].tolist()))
    return Point(item.id, dense, words.document(record.embedded_text), to_payload(record))
