"""Lists a tenant's memories by time, and the users, agents and runs that have any."""

from collections.abc import Sequence
from typing import Final

from memloop.wire.errors import TooLarge, Unprocessable
from memloop.wire.memory import MemoryItem, Scope
from memloop.wire.store_requests import MAX_DEPTH, Entities, Entity, EntityType, Listing, StoreList
from memory_store.items.documents import Clock, from_payload, now, within
from memory_store.items.lookup import View
from memory_store.vectors.filters import Condition, TimeRange, all_of, parse_filters
from memory_store.vectors.port import Found, VectorStore

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
        return Entities(entities=tuple([one for kind in _FIELDS for one in await self._of_type(kind, scope)]))

    async def _of_type(self, kind: EntityType, scope: Scope) -> list[Entity]:
        field, stored = _FIELDS[kind], within(scope)
        known = await self._vectors.values(field, where=stored, limit=_MOST_ENTITIES)
        if len(known) == _MOST_ENTITIES:
            raise TooLarge(f"there are more than {_MOST_ENTITIES} {kind}s to list", code="too_many_entities")
        shown = all_of([stored, View().condition(self._clock())])
        counts = await self._vectors.values(field, where=shown, limit=_MOST_ENTITIES)
        return [Entity(type=kind, id=name, memories=counts.get(name, 0)) for name in known]


def _items(found: Sequence[Found]) -> list[MemoryItem]:
    return [from_payload(one.id, one.payload).item for one in found]


def _sorted(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    by_id = sorted(items, key=lambda item: item.id)
    return sorted(by_id, key=lambda item: item.created_at, reverse=True)
