"""Bundles the adapters and rules with which stored items are read and changed, one write at a time per namespace."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, Record, now
from memory_store.items.guarded import GuardedStore
from memory_store.items.lookup import Owned, no_such_memory, stored
from memory_store.metrics import Metrics
from memory_store.vectors.gate import Gate
from memory_store.vectors.port import VectorStore


@dataclass(slots=True)
class _Lock:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class NamespaceLocks:
    """Locks by lane; a lock without users is dropped. While the gate is closed, no lock is taken."""

    def __init__(self, gate: Gate | None = None) -> None:
        self._locks: dict[str, _Lock] = {}
        self._gate = gate or Gate()

    def __len__(self) -> int:
        return len(self._locks)

    @contextlib.asynccontextmanager
    async def hold(self, *names: str) -> AsyncGenerator[None]:
        """Enters the gate once, then waits for the lanes in one order and keeps them for the block.

        Without a name it only keeps the gate open.
        """
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._gate.shared())
            for name in sorted(set(names)):
                await stack.enter_async_context(self._hold(name))
            yield

    @contextlib.asynccontextmanager
    async def _hold(self, name: str) -> AsyncGenerator[None]:
        held = self._locks.setdefault(name, _Lock())
        held.users += 1
        try:
            async with held.lock:
                yield
        finally:
            held.users -= 1
            if held.users == 0:
                del self._locks[name]


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
