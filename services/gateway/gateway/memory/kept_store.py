"""The memory store behind the policies: every write is redacted before it leaves the process."""

import asyncio

from gateway.memory.redacting import chars_of_add, line_of, redacted_add, redacted_buffer, redacted_line, redacted_patch
from gateway.policy import Keeper
from memloop.clients import Balancing, StoreClient
from memloop.wire.memory import BatchResult, Buffer, ItemPatch, MemoryItem, StoreAdd, StoreAddResult, StoreBatch
from memloop.wire.transfer import Imported, NumberedLine, StoreImport
from memloop_service.chores import computed


class KeptStore(StoreClient):
    """A client of the store that redacts as the keeper's policies ask. It raises Unavailable without them."""

    def __init__(self, base_url: str, *, key: str | None, balancing: Balancing, keeper: Keeper) -> None:
        super().__init__(base_url, key=key, balancing=balancing)
        self._keeper = keeper

    async def add(self, request: StoreAdd) -> StoreAddResult:
        """See ``StoreClient``."""
        return await super().add((await self._redacted((request,)))[0])

    async def add_batch(self, request: StoreBatch) -> BatchResult:
        """See ``StoreClient``."""
        return await super().add_batch(request.model_copy(update={"adds": await self._redacted(request.adds)}))

    async def patch(self, item_id: str, patch: ItemPatch, *, tenant: str, if_version: int | None = None) -> MemoryItem:
        """See ``StoreClient``. The memory is read first: its user's policy applies."""
        scope = (await self.item(item_id, tenant=tenant)).scope(tenant)
        redactions = await self._keeper.redactions(tenant, [scope])
        redact = redactions.of(scope)
        patch = redacted_patch(patch, redact) if redact.kinds else patch
        redactions.counted(redact)
        return await super().patch(item_id, patch, tenant=tenant, if_version=if_version)

    async def take(self, request: StoreImport) -> Imported:
        """See ``StoreClient``. A line that is no memory is sent as it is, because the store refuses it."""
        known = [(line, line_of(line)) for line in request.lines]
        scopes = [memory.item.scope(request.tenant) for _, memory in known if memory is not None]
        redactions = await self._keeper.redactions(request.tenant, scopes)

        def redacted() -> tuple[NumberedLine, ...]:
            lines: list[NumberedLine] = []
            for line, memory in known:
                if memory is not None:
                    redact = redactions.of(memory.item.scope(request.tenant))
                    line = redacted_line(line, memory, redact) if redact.kinds else line
                    redactions.counted(redact)
                lines.append(line)
            return tuple(lines)

        return await super().take(request.model_copy(update={"lines": await asyncio.to_thread(redacted)}))

    async def put_buffer(self, buffer: Buffer, *, fencing_token: int | None = None) -> Buffer:
        """See ``StoreClient``."""
        redactions = await self._keeper.redactions(buffer.namespace.tenant, [buffer.namespace])
        redact = redactions.of(buffer.namespace)
        buffer = redacted_buffer(buffer, redact) if redact.kinds else buffer
        redactions.counted(redact)
        return await super().put_buffer(buffer, fencing_token=fencing_token)

    async def _redacted(self, adds: tuple[StoreAdd, ...]) -> tuple[StoreAdd, ...]:
        """Redact adds of one tenant."""
        redactions = await self._keeper.redactions(adds[0].namespace.tenant, [add.namespace for add in adds])

        def redacted() -> tuple[StoreAdd, ...]:
            made: list[StoreAdd] = []
            for add in adds:
                redact = redactions.of(add.namespace)
                made.append(redacted_add(add, redact) if redact.kinds else add)
                redactions.counted(redact)
            return tuple(made)

        return await computed(redacted, chars=sum(map(chars_of_add, adds)))
