"""What an operator has done to all memories at once: embed them anew, or write them anew without what was erased."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from memloop.wire.errors import Conflict, NotFound, NotSupported, Unprocessable
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, from_payload, now
from memory_store.metrics import Metrics
from memory_store.upkeep.copying import Copy, Progress
from memory_store.vectors.gate import Gate
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.port import Collection, Point
from memory_store.vectors.schema import CollectionSpec, family, generation, successor

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush wrote anew, and what it removed."""

    collection: str
    memories: int
    dropped: tuple[str, ...]
    redis: tuple[str, ...]


class Upkeep:
    """One job at a time; reads and writes go on meanwhile. ``embedder_for`` makes the embedder of a model."""

    def __init__(
        self,
        live: LiveCollection,
        encoding: TextEncoding,
        *,
        gate: Gate,
        embedder_for: Callable[[str], BatchingEmbedder] | None,
        rewrite_redis: Callable[[], Awaitable[tuple[str, ...]]],
        metrics: Metrics,
        clock: Clock = now,
    ) -> None:
        self._live = live
        self._encoding = encoding
        self._gate = gate
        self._embedder_for = embedder_for
        self._rewrite_redis = rewrite_redis
        self._metrics = metrics
        self._clock = clock
        self._busy = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._embedder: BatchingEmbedder | None = None
        self.progress: Progress | None = None

    async def close(self) -> None:
        """Stop what runs; a copy goes on where it was when it is started again."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._embedder:
            await self._embedder.close()

    async def collections(self) -> tuple[str, tuple[str, ...]]:
        """The collection in service, and those that are kept beside it."""
        names = await self._live.collections.names()
        return self._live.name, tuple(sorted(name for name in names if name != self._live.name))

    async def drop(self, name: str) -> None:
        """Remove a collection that is not in service. Raises ``Conflict`` and ``NotFound``."""
        if self._busy.locked():
            raise Conflict("a collection is being copied; wait for its end", code="busy")
        async with self._busy:
            if name == self._live.name:
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
            spec, old = self._live.spec, self._live.name
            await self._drop_all(name for name in await self._others() if family(name) == family(old))
            target = await self._live.collections.open(spec, successor(old))
            progress = self._start("flush", target.name)
            with self._told(progress):
                await self._copied(target, spec, progress, _as_they_are)
                dropped = await self._others()
                await self._drop_all(dropped)
                redis = await self._rewrite_redis()
            return Flushed(target.name, progress.done, tuple(dropped), redis)

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
        if self._busy.locked() or (self.progress and self.progress.status == "running"):
            raise Conflict("another job runs; wait for its end", code="busy")
        if model == self._live.spec.model:
            raise Unprocessable(f"{model} is in service", param="model", code="model_in_service")
        embedder = self._embedder_for(model)
        progress = self._start("reembed", model)
        self._task = asyncio.create_task(self._reembed(model, embedder, progress), name="reembed")
        return progress

    async def _reembed(self, model: str, embedder: BatchingEmbedder, progress: Progress) -> None:
        try:
            with self._told(progress):
                async with self._busy:
                    await self._embed_anew(model, embedder, progress)
        except Exception:  # noqa: BLE001 - told as the end of the job, which whoever began it asks for
            _log.exception("the memories could not be embedded anew")

    async def _embed_anew(self, model: str, embedder: BatchingEmbedder, progress: Progress) -> None:
        """Copy and swap; then let go of the embedder that is not in service, be it the new one, which failed."""
        before = self._embedder

        async def embedded(points: Sequence[Point]) -> Sequence[Point]:
            texts = [from_payload(point.id, point.payload).embedded_text for point in points]
            vectors = await embedder.embed(texts)
            return [replace(point, dense=dense) for point, dense in zip(points, vectors, strict=True)]

        def swapped() -> None:
            self._encoding.use(embedder)
            self._embedder = embedder

        try:
            spec = CollectionSpec(model, await embedder.start())
            target = await self._live.collections.open(spec, await self._newest_of(spec))
            progress.target = target.name
            await self._copied(target, spec, progress, embedded, swapped=swapped)
        finally:
            unused = before if self._embedder is embedder else embedder
            if unused:
                await asyncio.shield(unused.close())

    async def _copied(
        self,
        target: Collection,
        spec: CollectionSpec,
        progress: Progress,
        transform: Callable[[Sequence[Point]], Awaitable[Sequence[Point]]],
        *,
        swapped: Callable[[], None] = lambda: None,
    ) -> None:
        copy = Copy(self._live, self._gate, transform=transform, progress=progress)
        try:
            before = await copy.run(target, spec, swapped=swapped)
        except BaseException:
            await target.close()
            raise
        await before.close()

    @contextmanager
    def _told(self, progress: Progress) -> Generator[None]:
        """The block's end as the job's. It is told when the next job may begin: nothing is awaited in between."""
        try:
            yield
        except BaseException as error:
            progress.error = f"{type(error).__name__}: {error}"
            self._end(progress, "failed")
            raise
        self._end(progress, "completed")

    def _start(self, kind: Literal["reembed", "flush"], target: str) -> Progress:
        self.progress = progress = Progress(kind, target, self._clock())
        self._metrics.watch_copy(done=lambda: progress.done, total=lambda: progress.total)
        return progress

    def _end(self, progress: Progress, status: Literal["completed", "failed"]) -> None:
        progress.status, progress.ended_at = status, self._clock()
        self._metrics.copies.labels(kind=progress.kind, status=status).inc()

    async def _newest_of(self, spec: CollectionSpec) -> str:
        mine = [name for name in await self._live.collections.names() if family(name) == spec.name]
        return max(mine, key=generation, default=spec.name)

    async def _others(self) -> list[str]:
        return [name for name in await self._live.collections.names() if name != self._live.name]

    async def _drop_all(self, names: Iterable[str]) -> None:
        for name in names:
            await self._live.collections.drop(name)


async def _as_they_are(points: Sequence[Point]) -> Sequence[Point]:
    return points
