"""Decides what a statement does to the records of its namespace."""

from datetime import datetime

from memory_store.embedding.encoding import TextEncoding
from memory_store.items.batch import Batch
from memory_store.items.conflicts import Change, Placement, Resolution, Rule, resolve
from memory_store.items.documents import Record, exactly_in, from_payload
from memory_store.items.statements import Statement
from memory_store.vectors.filters import Equals, Not, TimeRange, all_of
from memory_store.vectors.port import VectorStore

_NEIGHBOURS = 4


class Resolver:
    """Applies the rules of ``conflicts`` and, where ``similarity`` is set, the one of near duplicates."""

    def __init__(self, vectors: VectorStore, encoding: TextEncoding, *, similarity: float | None) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._similarity = similarity

    async def resolve(self, statement: Statement, batch: Batch) -> Resolution:
        """Returns the resolution of the statement against the batch, which mends the fact first."""
        if statement.is_raw:
            same = batch.records.fact(statement.chain)
            context = statement.context
            if same and not same[0].is_over(context.written_at):
                return _touch("raw turn", same[0], context.stated_at)
            return Resolution("inserted", "raw turn", placed=Placement(context.stated_at))
        batch.repair(statement.chain)
        versions = batch.records.versions(statement.chain)
        resolution = resolve(statement.value_hash, statement.context.stated_at, versions)
        if resolution.rule == "new fact" and self._similarity is not None:
            return await self._near_duplicate(statement, batch, self._similarity) or resolution
        return resolution

    async def _near_duplicate(self, statement: Statement, batch: Batch, similarity: float) -> Resolution | None:
        text = f"{statement.draft.key}: {statement.draft.value}"
        dense = await self._encoding.dense(text)
        marked = self._encoding.marked_words(text)
        # Live memories of the statement's namespace and type
        context = statement.context
        live = (Equals("status", "activated"), Equals("memory_type", statement.draft.memory_type))
        for found in await self._vectors.nearest(
            dense,
            where=all_of([exactly_in(context.namespace), *live, Not(TimeRange("expires_at", lte=context.written_at))]),
            limit=_NEIGHBOURS,
        ):
            record = from_payload(found.id, found.payload)
            if found.score >= similarity and self._encoding.marked_words(record.embedded_text) == marked:
                batch.add_known(record)
                return _touch(
                    "near duplicate", batch.records[found.id], statement.context.stated_at, similarity=found.score
                )
        return None


def _touch(rule: Rule, record: Record, stated_at: datetime, *, similarity: float | None = None) -> Resolution:
    confirmed = Change(record.item.id, confirmed_at=max(record.confirmed_at, stated_at))
    return Resolution("touched", rule, touched=record.item.id, changes=(confirmed,), similarity=similarity)
