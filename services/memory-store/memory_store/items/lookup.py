"""Finds stored records: one by its id, all versions of a fact, a tenant's by time. Lists users, agents and runs."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memloop.wire.errors import NotFound, TooLarge, Unprocessable
from memloop.wire.memory import MemoryItem, Scope
from memloop.wire.store_requests import MAX_DEPTH, Entities, Entity, EntityType, Listing, StoreList
from memory_store.items.documents import Clock, Record, View, every_record, from_payload, now, of_tenant, within
from memory_store.vectors.filters import Condition, Equals, Ids, TimeRange, all_of, parse_filters
from memory_store.vectors.port import Found, VectorStore


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


def is_uuid(text: str) -> bool:
    """Return whether an item can have this id."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


_MOST_ENTITIES: Final = 100_000
_FIELDS: Final[dict[EntityType, str]] = {"user": "user_id", "agent": "agent_id", "run": "run_id"}


class Listings:
    """``POST /v1/items/list`` and ``GET /v1/entities``."""

    def __init__(self, vectors: VectorStore, *, clock: Clock = now) -> None:
        self._vectors = vectors
        self._clock = clock

    async def page(self, request: StoreList) -> Listing:
        """Return the newest memories after the skipped ones. Raises ``Unprocessable`` for a wrong filter or a deep
        page.
        """
        last = request.skip + request.limit
        if last > MAX_DEPTH:
            raise Unprocessable(f"a listing reaches {MAX_DEPTH} memories; narrow it with a filter", param="page")
        user_filter = parse_filters(request.filters) if request.filters else None
        view = View(latest_only=request.latest_only)
        where = all_of([within(request.scope), view.condition(self._clock()), user_filter])
        items = (await self._newest(where, last))[request.skip :]
        return Listing(items=tuple(items), total=await self._vectors.count(where=where))

    async def _newest(self, where: Condition, limit: int) -> list[MemoryItem]:
        """Order by time, then by id: one add may hold many memories of the same time, and a page may end among them."""
        found = _items(await self._vectors.newest(where=where, limit=limit))
        if len(found) < limit:
            return _sorted(found)
        oldest = min(item.created_at for item in found)
        newer = _sorted([item for item in found if item.created_at > oldest])
        same_time = all_of([where, TimeRange("created_at", gte=oldest, lte=oldest)])
        page = await self._vectors.scroll(where=same_time, limit=limit - len(newer))
        return newer + _items(page.found)

    async def entities(self, scope: Scope) -> Entities:
        """List all ids with stored data, deleted memories and raw turns included. Raises ``TooLarge``."""
        entities: list[Entity] = []
        for kind, field in _FIELDS.items():
            known = await self._vectors.values(field, where=within(scope), limit=_MOST_ENTITIES)
            if len(known) == _MOST_ENTITIES:
                raise TooLarge(f"there are more than {_MOST_ENTITIES} {kind}s to list", code="too_many_entities")
            shown = all_of([within(scope), View().condition(self._clock())])
            counts = await self._vectors.values(field, where=shown, limit=_MOST_ENTITIES)
            entities += [Entity(type=kind, id=name, memories=counts.get(name, 0)) for name in known]
        return Entities(entities=tuple(entities))


def _items(found: Sequence[Found]) -> list[MemoryItem]:
    return [from_payload(one.id, one.payload).item for one in found]


def _sorted(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    by_id = sorted(items, key=lambda item: item.id)
    return sorted(by_id, key=lambda item: item.created_at, reverse=True)
