"""Bundles what reads and changes of stored items need, finds their records, and makes two small changes.

A client's verdict on a memory is kept; a soft deletion is taken back.
"""

import uuid
from dataclasses import dataclass

from memloop.wire.errors import NotFound
from memloop.wire.feedback import Feedback, FeedbackRequest
from memloop.wire.memory import MemoryItem
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.batch import Batch, embedded, updated_point
from memory_store.items.documents import Clock, Record, every_record, from_payload, now, of_tenant, within
from memory_store.items.guarded import GuardedStore, NamespaceLocks, repeated_when_moved
from memory_store.items.statements import Placement, Resolution, resolve
from memory_store.metrics import Metrics
from memory_store.vectors.filters import AnyOf, Ids, OneOf, all_of
from memory_store.vectors.port import Collection


@dataclass(frozen=True, slots=True)
class Owned:
    """An item's id and the tenant that asks for it."""

    tenant: str
    item_id: str


async def stored(vectors: Collection, owned: Owned) -> Record:
    """Returns the item's record, even if it is deleted or expired. Raises ``NotFound``, also for another tenant's."""
    if is_uuid(owned.item_id):
        where = all_of([of_tenant(owned.tenant), Ids((owned.item_id,))])
        page = await vectors.scroll(where=where, limit=1)
        if page.found:
            return from_payload(page.found[0].id, page.found[0].payload)
    raise no_such_memory()


def no_such_memory() -> NotFound:
    """Returns the error of an id that names no memory of the tenant, or none any more."""
    return NotFound("there is no such memory", param="id")


async def fact_of(vectors: Collection, record: Record) -> list[Record]:
    """Returns all versions of the record's fact, deleted and expired ones too, in no order.

    Those of a text are the former states of the item as well, whatever they said.
    """
    chains = record.chain, record.item.id
    either = AnyOf((OneOf("chain", chains), Ids((record.chain,))))
    found = await every_record(vectors, all_of([within(record.namespace), either]))
    return [each for each in found if each.chain in chains or each.item.id == record.chain]


def is_uuid(text: str) -> bool:
    """Return whether an item can have this id."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ItemTools:
    """The dependencies of reads and changes of stored items."""

    vectors: Collection
    encoding: TextEncoding
    locks: NamespaceLocks
    guarded: GuardedStore
    metrics: Metrics
    clock: Clock = now

    async def visible(self, owned: Owned) -> Record:
        """Returns the item's record. Raises ``NotFound``: unknown, of another tenant, deleted or expired."""
        record = await stored(self.vectors, owned)
        if record.is_over(self.clock()):
            raise no_such_memory()
        return record


@repeated_when_moved
async def give_feedback(tools: ItemTools, owned: Owned, request: FeedbackRequest) -> MemoryItem:
    """Keep the verdict on one version, in place of an earlier one; the version's number stays.

    Repeating a verdict changes nothing. Raises ``NotFound``: unknown, of another tenant, deleted or expired.
    """
    namespace = (await tools.visible(owned)).namespace
    async with tools.locks.hold(namespace.lane()):
        begun = await tools.guarded.begin(namespace)
        record = await tools.visible(owned)
        feedback = record.item.feedback
        if ((feedback.verdict, feedback.reason) if feedback else (None, None)) == (
            request.feedback,
            request.reason,
        ):
            return record.item
        moment, verdict = tools.clock(), request.feedback
        given = Feedback(verdict=verdict, reason=request.reason, at=moment) if verdict else None
        changed = record.with_item(feedback=given, updated_at=moment)
        judged = changed.decided(verdict or "feedback withdrawn", moment)
        await tools.guarded.store(begun, await updated_point(judged, tools.vectors))
    tools.metrics.feedback.labels(request.feedback or "withdrawn").inc()
    return judged.item


@repeated_when_moved
async def recover(tools: ItemTools, owned: Owned) -> MemoryItem:
    """The memory that holds the deleted item's fact again; an item that is not deleted is left as it is.

    What was stated under its key since the deletion stands: the item returns to its place in event time, live if
    nothing followed it, and as history otherwise. Where another version has the same value by now, that one is
    confirmed and answered. Raises ``NotFound``: unknown, of another tenant, expired, or removed for good.
    """
    namespace = (await stored(tools.vectors, owned)).namespace
    async with tools.locks.hold(namespace.lane()):
        begun = await tools.guarded.begin(namespace)
        record = await stored(tools.vectors, owned)
        if record.item.status != "deleted":
            return (await tools.visible(owned)).item
        ends = [end for end in (record.item.expires_at, record.ended_before) if end is not None]
        if ends and min(ends) <= tools.clock():
            raise no_such_memory()
        fact = await fact_of(tools.vectors, record)
        moment, stated_at = tools.clock(), record.item.valid_from
        batch = Batch(record.namespace, fact, written_at=moment)
        if record.item.memory_type == "RawTurn":
            resolution = Resolution("inserted", "raw turn", placed=Placement(stated_at))
        else:
            versions = [each.as_version() for each in fact if not each.is_over(moment)]
            resolution = resolve(record.item.hash, stated_at, versions)
        restored = batch.restore(record, resolution)
        await tools.guarded.store(begun, await embedded([batch], tools.vectors, tools.encoding))
        return restored.item
