"""Keeps a store process on the collection that all stores have put in service."""

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from memloop.chores import alongside, ended
from memloop.wire.errors import MemloopError, NotSupported, Unavailable
from memloop_state.store.service import FRESH_S, Copying, Seen, Service, ServiceRecord, Serving
from memory_store.embedding.encoding import TextEncoding
from memory_store.embedding.port import EmbeddingModel
from memory_store.vectors.live import SHARED, Gate, LiveCollection
from memory_store.vectors.port import Collection
from memory_store.vectors.schema import CollectionSpec

_BEAT_S: Final = 0.5
_PAUSE_S: Final = 0.02
_log = logging.getLogger(__name__)


async def pause() -> None:
    """The time between two looks at a change that another store makes."""
    await asyncio.sleep(_PAUSE_S)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A collection that is open, with the embedder that it needs beside the one in use."""

    serving: Serving
    collection: Collection
    embedder: EmbeddingModel | None = None
    copy: str = ""

    async def close(self) -> None:
        await self.collection.close()
        if self.embedder:
            await self.embedder.close()


class Membership:
    """Which collection this process works on (``store.erasures.Standing``), and how it turns to another one.

    ``embedder_for`` makes the embedder of a model. A site that only one process opens needs no heartbeat and no check
    before a read. ``pause`` is awaited between two looks at a change that another store makes.
    """

    def __init__(
        self,
        live: LiveCollection,
        encoding: TextEncoding,
        record: ServiceRecord,
        *,
        gate: Gate,
        embedder_for: Callable[[str], EmbeddingModel] | None = None,
        pause: Callable[[], Awaitable[None]] = pause,
    ) -> None:
        self.gen = ""
        self.site = record.site
        self.has_copies = live.site == SHARED
        self.own_copy = ""
        self._live = live
        self._encoding = encoding
        self.record = record
        self._gate = gate
        self._embedder_for = embedder_for
        self.pause = pause
        self._alone = live.site != SHARED
        self._name = "" if self._alone else uuid.uuid4().hex
        self._lock = asyncio.Lock()
        self._confirming = asyncio.Lock()
        self._looked_at = self._fresh_until = 0.0
        self._prepared: Prepared | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._embedder: EmbeddingModel | None = None
        if not self._alone:
            live.confirm = self._confirm

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Turns to each collection that is put in service, from the opening of the vectors on."""
        if self._alone:
            yield
        else:
            with contextlib.suppress(MemloopError):
                if self._live.opened.is_set():
                    await self.catch_up()
            async with alongside(self._watch()):
                yield
            with contextlib.suppress(MemloopError):
                await self.record.leave(self._name)
        if self._preparing:
            await ended({self._preparing})
        await self.forget()
        if self._embedder:
            await self._embedder.close()

    async def catch_up(self) -> None:
        """Turn to the collection in service; wait a moment while another one takes over. Raises ``Unavailable``."""
        asked = time.monotonic()
        async with self._lock:
            if self._looked_at >= asked:
                return
            gen = self.gen
            service = await self._step()
            if gen == self.gen and service.copy is None:
                await self.record.align(gen)
        if service.copy is not None:
            await self.pause()

    async def seen(self) -> Seen:
        return await self.record.look(self._name, gen=self.gen, prepared=self._prepared.copy if self._prepared else "")

    async def everybody(self, *, prepared: str = "") -> bool:
        """Whether every store that is alive works on the generation of this one, or has prepared that copy."""
        peers = (await self.seen()).peers
        return all(peer.prepared == prepared if prepared else peer.gen == self.gen for peer in peers)

    def prepare(self, prepared: Prepared) -> None:
        """Keep what takes over when the copy that this process runs is done."""
        self._prepared = prepared

    @property
    def next_collection(self) -> Collection:
        """The collection that takes over when the copy that this process runs is done."""
        if self._prepared is None:
            raise RuntimeError("no collection is prepared")
        return self._prepared.collection

    async def forget(self) -> None:
        """Close what did not take over."""
        prepared, self._prepared = self._prepared, None
        if prepared:
            await prepared.close()

    async def apply_decision(self, copy: str) -> bool:
        """Apply the decision on a copy: move the alias, then open the gates. False if the copy is not decided."""
        seen = await self.seen()
        service = seen.service
        if service is None or service.copy is None or service.copy.id != copy or not service.copy.decided:
            return False
        if await self._live.collections.serving() != service.serving.name:
            await self._live.collections.serve(service.serving.name)
        others = [peer for peer in seen.peers if peer.name != self._name]
        settles = bool(others) and service.serving == service.copy.target
        await self.record.align(service.gen, ended=copy, settles=settles)
        return True

    async def _watch(self) -> None:
        await self._live.opened.wait()
        failed = ""
        while True:
            try:
                async with self._lock:
                    await self._step()
                failed = ""
            except MemloopError as error:
                if error.message != failed:
                    _log.warning("the collection in service is not certain: %s", error.message)
                failed = error.message
            except Exception:  # noqa: BLE001 - whatever an embedding model raises
                _log.exception("the collection in service could not be opened")
            await asyncio.sleep(_BEAT_S)

    async def _step(self) -> Service:
        """Look once, end what a dead store left, turn to the collection in service and prepare the next one."""
        sent = time.monotonic()
        seen = await self.seen()
        service = seen.service
        if service is None or await self._outlived(seen, service):
            service = await self._put_own(service)
        if service.copy and service.copy.lapsed and service.copy.id != self.own_copy:
            service = await self._ended(service, service.copy)
        if service.gen != self.gen:
            if service.serving.name != self._live.name:
                prepared, self._prepared = self._prepared, None
                if prepared is None or prepared.serving != service.serving:
                    if service.serving.name not in await self._live.collections.names():
                        message = f"The collection {service.serving.name} is not there."
                        raise Unavailable(message, code="no_collection", retry_after_s=2.0)
                    prepared = await self._open(service.serving)
                await self._replace(prepared, service.gen)
            self.gen = service.gen
        self._looked_at, self._fresh_until = sent, sent + FRESH_S
        await self._prepare_next(service.copy)
        return service

    async def _outlived(self, seen: Seen, service: Service) -> bool:
        """Whether the record is of stores that are gone: the vectors' own word, the alias, then counts."""
        if self.gen:
            return False
        if self._alone:
            return True
        others = [peer for peer in seen.peers if peer.name != self._name]
        if others or service.copy:
            return False
        return await self._live.collections.serving() != service.serving.name

    async def _put_own(self, before: Service | None) -> Service:
        spec = self._live.spec
        serving = Serving(self._live.name, spec.model, spec.dimension)
        await self.record.put(serving, instead_of=before.gen if before else "")
        service = (await self.seen()).service
        if service is None:
            raise Unavailable("There is no record of which collection is in service.", retry_after_s=1.0)
        await self.record.align(service.gen)
        return service

    async def _ended(self, service: Service, copy: Copying) -> Service:
        """End a copy whose lease is over. Its store may have renewed it by now, and decide it at any moment.

        So only an end that is in force is forgotten: else the alias would never be moved.
        """
        await self.record.abandon(copy.id, own=False)
        if await self.apply_decision(copy.id):
            await self.record.clear(copy.id)
        return (await self.seen()).service or service

    async def _replace(self, prepared: Prepared, gen: str) -> None:
        """Work on the prepared collection; close the one before. Any request may be the one that comes to this."""
        spec = CollectionSpec(prepared.serving.model, prepared.serving.dimension)
        old = self._embedder
        async with self._gate.exclusive():
            before = self._live.replace(prepared.collection, spec)
            if prepared.embedder:
                self._encoding.use(prepared.embedder)
                self._embedder = prepared.embedder
            self.gen = gen
        _log.info("collection %s is in service", prepared.serving.name)
        try:
            await _close_replaced(before)
        finally:
            if prepared.embedder and old:
                await _close_replaced(old)

    async def _open(self, serving: Serving, copy: str = "") -> Prepared:
        embedder = None
        if serving.model != self._live.spec.model:
            if self._embedder_for is None:
                raise NotSupported("this store cannot load another embedding model")
            embedder = self._embedder_for(serving.model)
            await embedder.start()
        collection = await self._live.collections.open(CollectionSpec(serving.model, serving.dimension), serving.name)
        return Prepared(serving, collection, embedder, copy)

    async def _prepare_next(self, copy: Copying | None) -> None:
        """Open the target of another store's copy before it takes over; forget one that does not.

        The target of this store's own copy stays: ``copy`` may have been read before that one began.
        """
        wanted = copy.id if copy and not copy.decided else ""
        if wanted and wanted == self.own_copy:
            return
        if self._prepared and self._prepared.copy not in {wanted, self.own_copy}:
            await self.forget()

        async def prepare(copy: Copying) -> None:
            try:
                self._prepared = await self._open(copy.target, copy.id)
            except Exception:  # noqa: BLE001 - the store that copies waits, and fails when this never comes about
                _log.exception("collection %s could not be prepared", copy.target.name)

        if copy and wanted and self._prepared is None and (self._preparing is None or self._preparing.done()):
            self._preparing = asyncio.create_task(prepare(copy), name="preparing a collection")

    async def _confirm(self) -> None:
        """Raise ``Unavailable`` where another collection may be in service: by the record, else by the alias."""
        if time.monotonic() < self._fresh_until:
            return
        async with self._confirming:
            sent = time.monotonic()
            if sent < self._fresh_until:
                return
            service = None
            with contextlib.suppress(Unavailable):
                service = (await self.seen()).service
            if service is not None and self.gen:
                in_service = service.gen == self.gen
            else:
                in_service = await self._live.collections.serving() == self._live.name
            if not in_service:
                message = "Another collection is in service by now."
                raise Unavailable(message, code="collection_moved", retry_after_s=1.0)
            self._fresh_until = sent + FRESH_S


async def _close_replaced(replaced: Collection | EmbeddingModel) -> None:
    """Close a collection or a model that serves no request any more. A failure is logged for the operator."""
    try:
        await replaced.close()
    except Exception:  # noqa: BLE001 - Edge and embedding models raise whatever they like
        _log.exception("what was in service before could not be closed")
