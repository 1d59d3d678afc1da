"""Finds stored records: one by its id, all versions of a fact, everything that a condition matches."""

import uuid
from dataclasses import dataclass

from memloop.wire.errors import NotFound
from memory_store.items.documents import Record, from_payload, of_tenant, within
from memory_store.vectors.filters import Condition, Equals, Ids, all_of
from memory_store.vectors.paging import pages
from memory_store.vectors.port import VectorStore


@dataclass(frozen=True, slots=True)
class Owned:
    """An item's id and the tenant that asks for it."""

    tenant: str
    item_id: str


async def stored(vectors: VectorStore, owned: Owned) -> Record:
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


async def fact_of(vectors: VectorStore, record: Record) -> list[Record]:
    """Returns all versions of the record's fact, deleted and expired ones too, in no order."""
    return await every_record(vectors, all_of([within(record.namespace), Equals("chain", record.chain)]))


async def every_record(vectors: VectorStore, where: Condition) -> list[Record]:
    """Returns all records that the condition matches."""
    return [from_payload(one.id, one.payload) async for page in pages(vectors, where) for one in page.found]


def is_uuid(text: str) -> bool:
    """Return whether an item can have this id."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
