"""Taking back a soft deletion."""

from memloop.wire.memory import MemoryItem
from memory_store.items.batch import Batch, embedded
from memory_store.items.conflicts import Placement, Resolution, resolve
from memory_store.items.guarded import repeated_when_moved
from memory_store.items.lookup import Owned, fact_of, no_such_memory, stored
from memory_store.items.tools import ItemTools


class Recovery:
    """``POST /v1/items/{id}/recover``."""

    def __init__(self, tools: ItemTools) -> None:
        self._tools = tools

    @repeated_when_moved
    async def recover(self, owned: Owned) -> MemoryItem:
        """The memory that holds the deleted item's fact again; an item that is not deleted is left as it is.

        What was stated under its key since the deletion stands: the item returns to its place in event time, live if
        nothing followed it, and as history otherwise. Where another version has the same value by now, that one is
        confirmed and answered. Raises ``NotFound``: unknown, of another tenant, expired, or removed for good.
        """
        namespace = (await stored(self._tools.vectors, owned)).namespace
        async with self._tools.locks.hold(namespace.lane()):
            begun = await self._tools.guarded.begin(namespace)
            record = await stored(self._tools.vectors, owned)
            if record.item.status != "deleted":
                return (await self._tools.visible(owned)).item
            ends = [end for end in (record.item.expires_at, record.ended_before) if end is not None]
            if ends and min(ends) <= self._tools.clock():
                raise no_such_memory()
            fact = await fact_of(self._tools.vectors, record)
            batch = Batch(record.namespace, fact, written_at=self._tools.clock())
            stated_at = record.item.valid_from
            if record.item.memory_type == "RawTurn":
                resolution = Resolution("inserted", "raw turn", placed=Placement(stated_at))
            else:
                resolution = resolve(record.item.hash, stated_at, batch.records.versions(record.chain))
            restored = batch.restore(record, resolution)
            await self._tools.guarded.store(begun, await embedded([batch], self._tools.vectors, self._tools.encoding))
            return restored.item
