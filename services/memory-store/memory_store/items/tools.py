"""Bundles the adapters and rules with which stored items are read and changed."""

from dataclasses import dataclass

from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, Record, now
from memory_store.items.guarded import GuardedStore
from memory_store.items.locks import NamespaceLocks
from memory_store.items.lookup import Owned, no_such_memory, stored
from memory_store.metrics import Metrics
from memory_store.vectors.port import VectorStore


@dataclass(frozen=True, slots=True)
class ItemTools:
    """The dependencies of changes to stored items."""

    vectors: VectorStore
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
