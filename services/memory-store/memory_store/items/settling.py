"""Settles writes that Qdrant refused on some copies only: all copies get what one of them has."""

import contextlib
import logging
from typing import Final

from memloop.wire.errors import MemloopError
from memloop.wire.memory import Namespace
from memloop_state.store.settling import Settlings
from memory_store.items.documents import within
from memory_store.vectors.filters import Ids, all_of
from memory_store.vectors.port import Collection

_AT_ONCE: Final = 64
_BATCH: Final = 64
_log = logging.getLogger(__name__)


class Settler:
    """Gives every copy of a user's points what one of them has, for the points of writes that were refused."""

    def __init__(self, vectors: Collection, settlings: Settlings) -> None:
        self._vectors = vectors
        self._settlings = settlings

    async def settle(self, namespace: Namespace) -> None:
        """Settle all writes of a user. Raises ``Unavailable`` or ``DependencyError`` where Qdrant refuses that too."""
        taken = await self._settlings.take(namespace)
        if taken is None:
            return
        try:
            owner = Namespace(tenant=taken.namespace.tenant, user_id=taken.namespace.user_id)
            ids = taken.ids
            for at in range(0, len(ids), _BATCH):
                batch = ids[at : at + _BATCH]
                found = await self._vectors.get(batch, where=within(owner))
                absent = tuple(set(batch) - {point.id for point in found})
                if found:
                    await self._vectors.upsert(found)
                if absent:
                    await self._vectors.delete(where=all_of([within(owner), Ids(absent)]))
        except BaseException:
            with contextlib.suppress(MemloopError):
                await self._settlings.failed(taken)
            raise
        await self._settlings.done(taken)
        _log.info("%d points of %d refused writes are settled", len(taken.ids), len(taken.writes))

    async def settle_some(self) -> int:
        """Settle what no repeated write settles; return of how many users. Raises ``Unavailable``."""
        namespaces = await self._settlings.some(_AT_ONCE)
        settled = 0
        for namespace in namespaces:
            try:
                await self.settle(namespace)
                settled += 1
            except MemloopError as error:
                _log.debug("a refused write is not settled: %s", error.message)
        return settled
