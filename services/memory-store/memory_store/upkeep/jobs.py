"""Runs an operator's jobs over all memories: re-embedding, and a flush that leaves erased ones out."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from memloop.wire.errors import Conflict, MemloopError, NotFound, NotSupported, Unprocessable
from memloop_state.store.service import Service, Serving
from memory_store.embedding.port import EmbeddingModel
from memory_store.items.documents import Clock, from_payload, now
from memory_store.metrics import Metrics
from memory_store.upkeep.copying import Copy, Kind, Lease, Progress, Status, Transform, copy_lost
from memory_store.upkeep.membership import Membership, Prepared
from memory_store.vectors.live import Gate, LiveCollection
from memory_store.vectors.port import Point, VectorState
from memory_store.vectors.schema import CollectionSpec, family, generation, successor

_POLL_S = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Flushed:
    """The result of a flush: the new collection, its memories, the dropped collections, the rewritten files."""

    collection: str
    memories: int
    dropped: tuple[str, ...]
    files: tuple[str, ...]


class Upkeep:
    """One job at a time among all stores; reads and writes go on.

    ``embedder_for`` makes the embedder of a model; ``shut_s``: see ``Copy``.
    """

    def __init__(
        self,
        live: LiveCollection,
        membership: Membership,
        *,
        gate: Gate,
        embedder_for: Callable[[str], EmbeddingModel] | None,
        rewrite_files: Callable[[], Awaitable[tuple[str, ...]]],
        metrics: Metrics,
        clock: Clock = now,
        shut_s: float = 1.0,
    ) -> None:
        self._live = live
        self._membership = membership
        self._gate = gate
        self._embedder_for = embedder_for
        self._rewrite_files = rewrite_files
        self._metrics = metrics
        self._clock = clock
        self._shut_s = shut_s
        self._busy = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._progress: Progress | None = None

    async def close(self) -> None:
        """Stop what runs; a copy goes on where it was when it is started again."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def vectors(self) -> VectorState:
        """What the Qdrant server is, if there is one."""
        return await self._live.state() or VectorState()

    async def collections(self) -> tuple[str, tuple[str, ...]]:
        """The collection in service, and those that are kept beside it."""
        names = await self._live.collections.names()
        return self._live.name, tuple(sorted(name for name in names if name != self._live.name))

    async def job(self) -> Progress | None:
        """The newest job of any store."""
        service = await self._service()
        stored = Progress.model_validate_json(service.job) if service.job else None
        if stored and stored.status == "running" and service.copy is None:
            stored = stored.model_copy(update={"status": "failed", "error": "the store that copied is gone"})
        known = [one for one in (self._progress, stored) if one]
        return max(known, key=lambda one: one.started_at, default=None)

    async def drop(self, name: str) -> None:
        """Remove a collection that is not in service. Raises ``Conflict`` and ``NotFound``."""
        service = await self._service()
        if self._busy.locked() or service.copy:
            raise Conflict("a collection is being copied; wait for its end", code="busy")
        async with self._busy:
            if name == service.serving.name:
                raise Conflict("this collection is in service", code="in_service")
            if name not in await self._live.collections.names():
                raise NotFound(f"there is no collection {name[:80]!r}", param="name")
            await self._live.collections.drop(name)

    async def flush(self) -> Flushed:
        """Write every live memory to new files and remove all others: what was erased before is on no disk of ours.

        Collections that a re-embedding left are dropped too: they hold what has been erased since. A flush waits
        for the one before: that one may have copied what was erased while it ran.
        """
        async with self._busy:
            progress = self._start("flush", "")
            with self._recorded(progress):
                target, lease = await self._flushing(progress)
                async with self._held(lease, progress):
                    # What earlier flushes left. The target itself may be there: other stores prepare it.
                    kept = {target.name, self._live.name}
                    names = await self._live.collections.names()
                    await self._drop_all(
                        [name for name in names if family(name) == family(target.name) and name not in kept]
                    )
                    await self._prepare(lease, target)
                    await self._copied(lease, progress)
                    dropped = [name for name in await self._live.collections.names() if name != self._live.name]
                    await self._drop_all(dropped)
                    files = await self._rewrite_files()
            return Flushed(target.name, progress.done, tuple(dropped), files)

    async def _flushing(self, progress: Progress) -> tuple[Serving, Lease]:
        """The target of a flush and its lease, once no other store copies."""
        while True:
            # The serving collection under a new name, which no earlier copy had
            spec = self._live.spec
            mine = [name for name in await self._live.collections.names() if family(name) == family(self._live.name)]
            target = Serving(successor(max([self._live.name, *mine], key=generation)), spec.model, spec.dimension)
            progress.target = target.name
            lease = await self._claimed(target, progress)
            if lease is not None:
                return target, lease
            await asyncio.sleep(_POLL_S)

    async def archive(self) -> Path:
        """All memories as a new tar file, the caller's to delete; writes and searches wait while it is made.

        Raises ``NotSupported``.
        """
        async with self._busy, self._gate.exclusive():
            return await self._live.archive()

    async def reembed(self, model: str) -> Progress:
        """Begin to embed all memories with another model; the collection of the old one is kept.

        An interrupted run goes on where it was. Raises ``Conflict`` while another job runs, ``Unprocessable`` for the
        model in service, and ``NotSupported``.
        """
        if self._embedder_for is None:
            raise NotSupported("this store cannot load another embedding model")
        service = await self._service()
        if service.copy or self._busy.locked() or (self._progress and self._progress.status == "running"):
            raise _busy()
        if model == self._live.spec.model:
            raise Unprocessable(f"{model} is in service", param="model", code="model_in_service")
        embedder = self._embedder_for(model)
        progress = self._start("reembed", model)

        async def run() -> None:
            try:
                with self._recorded(progress):
                    async with self._busy:
                        await self._reembed(model, embedder, progress)
            except Exception:  # noqa: BLE001 - recorded as the end of the job, for whoever began it
                _log.exception("re-embedding the memories failed")

        self._task = asyncio.create_task(run(), name="reembed")
        return progress

    async def _reembed(self, model: str, embedder: EmbeddingModel, progress: Progress) -> None:
        async def embedded(points: Sequence[Point]) -> Sequence[Point]:
            texts = [from_payload(point.id, point.payload).embedded_text for point in points]
            vectors = await embedder.embed(texts)
            return [replace(point, dense=dense) for point, dense in zip(points, vectors, strict=True)]

        async with AsyncExitStack() as unused:
            unused.push_async_callback(embedder.close)
            spec = CollectionSpec(model, await embedder.start())
            mine = [name for name in await self._live.collections.names() if family(name) == spec.name]
            target = Serving(max(mine, key=generation, default=spec.name), model, spec.dimension)
            progress.target = target.name
            lease = await self._claimed(target, progress)
            if lease is None:
                raise _busy()
            async with self._held(lease, progress):
                await self._prepare(lease, target, embedder)
                unused.pop_all()
                await self._copied(lease, progress, embedded)

    async def _claimed(self, target: Serving, progress: Progress) -> Lease | None:
        """The lease of a copy; None while another store has one."""
        membership = self._membership
        await membership.catch_up()
        membership.own_copy = copy = uuid.uuid4().hex
        try:
            if await self._membership.record.claim(membership.gen, copy, target, progress.model_dump_json()):
                return Lease(self._membership.record, copy, progress)
        except BaseException:
            membership.own_copy = ""
            raise
        membership.own_copy = ""
        return None

    @asynccontextmanager
    async def _held(self, lease: Lease, progress: Progress) -> AsyncGenerator[None]:
        """Keep the lease during the block, and end the copy with it in the record of all stores."""
        try:
            async with lease.renewed():
                yield
        except BaseException as error:
            with suppress(MemloopError):
                await self._end_copy(lease, _ended(progress, "failed", self._clock(), error))
            raise
        else:
            await self._end_copy(lease, _ended(progress, "completed", self._clock()))
        finally:
            self._membership.own_copy = ""
            await self._membership.forget()

    async def _end_copy(self, lease: Lease, progress: Progress) -> None:
        """Put the decision into force and release the lock."""
        await self._membership.record.abandon(lease.copy, own=True)
        await self._membership.apply_decision(lease.copy)
        await self._membership.record.clear(lease.copy, progress.model_dump_json())

    async def _prepare(self, lease: Lease, target: Serving, embedder: EmbeddingModel | None = None) -> None:
        spec = CollectionSpec(target.model, target.dimension)
        collection = await self._live.collections.open(spec, target.name)
        self._membership.prepare(Prepared(target, collection, embedder, lease.copy))

    async def _copied(self, lease: Lease, progress: Progress, transform: Transform | None = None) -> None:
        """Copy, swap, and wait until every store works on the copy."""
        membership = self._membership
        copy = Copy(self._live, membership, lease, transform=transform, shut_s=self._shut_s)
        await copy.run(membership.next_collection, progress)
        await membership.apply_decision(lease.copy)
        await membership.catch_up()
        while not await membership.everybody():
            await lease.hold()
            await membership.pause()

    @contextmanager
    def _recorded(self, progress: Progress) -> Generator[None]:
        """Record the block's end as the job's, without an await: the next job may begin then."""
        try:
            yield
        except BaseException as error:
            self._end(_ended(progress, "failed", self._clock(), error))
            raise
        self._end(_ended(progress, "completed", self._clock()))

    def _start(self, kind: Kind, target: str) -> Progress:
        self._progress = progress = Progress(kind=kind, target=target, started_at=self._clock())
        self._metrics.watch_copy(done=lambda: progress.done, total=lambda: progress.total)
        return progress

    def _end(self, progress: Progress) -> None:
        self._progress = progress
        self._metrics.copies.labels(kind=progress.kind, status=progress.status).inc()

    async def _service(self) -> Service:
        membership = self._membership
        await membership.catch_up()
        service = (await membership.seen()).service
        if service is None:
            raise copy_lost()
        return service

    async def _drop_all(self, names: Iterable[str]) -> None:
        for name in names:
            await self._live.collections.drop(name)


def _busy() -> Conflict:
    return Conflict("another job runs; wait for its end", code="busy")


def _ended(progress: Progress, status: Status, moment: datetime, error: BaseException | None = None) -> Progress:
    message = f"{type(error).__name__}: {error}" if error else None
    return progress.model_copy(update={"status": status, "ended_at": moment, "error": message})
