"""Records to points of the vector store, and batches of them into it."""

from collections.abc import Iterable, Sequence

from memory_store.embedding.encoding import TextEncoding
from memory_store.items.batch import Batch
from memory_store.items.documents import Record, exactly_in, to_payload, within
from memory_store.vectors.port import Point, VectorStore


async def points_of(records: Sequence[Record], encoding: TextEncoding) -> list[Point]:
    """Embeds the records in one call and returns them as points."""
    vectors = await encoding.documents([record.embedded_text for record in records])
    return [
        Point(record.item.id, dense, sparse, to_payload(record))
        for record, (dense, sparse) in zip(records, vectors, strict=True)
    ]


async def updated_point(record: Record, vectors: VectorStore) -> list[Point]:
    """Returns the record's point with its stored vectors and the record's fields; empty if the item is gone."""
    found = await vectors.get([record.item.id], where=within(record.namespace))
    return [Point(old.id, old.dense, old.sparse, to_payload(record)) for old in found]


async def embedded(batches: Iterable[Batch], vectors: VectorStore, encoding: TextEncoding) -> list[Point]:
    """Returns the batches' new and changed points; a stored point keeps its vectors."""
    points: list[Point] = []
    unembedded: list[Record] = []
    for batch in batches:
        new, stored = batch.changed()
        changed = {record.item.id: record for record in stored}
        kept = await vectors.get(list(changed), where=exactly_in(batch.namespace)) if changed else ()
        points += [Point(old.id, old.dense, old.sparse, to_payload(changed.pop(old.id))) for old in kept]
        unembedded += [*new, *changed.values()]
    return points + await points_of(unembedded, encoding)
