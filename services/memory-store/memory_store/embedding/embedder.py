"""Dense vectors of texts: the port, and a micro-batching front for an encoder that runs on one thread."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from memloop.wire.errors import DependencyError, Unavailable
from memory_store.embedding.vector_cache import KnownVectors, VectorCache
from memory_store.metrics import Metrics

Vector: TypeAlias = tuple[float, ...]

_PROBE = "How many dimensions?"


class Embedder(Protocol):
    """Texts to unit vectors."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector per text, in order. Raises ``Unavailable`` when too many texts wait."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a text that is searched for. Raises ``DependencyError``, soon if the model is away."""
        ...


class EmbeddingModel(Embedder, Protocol):
    """An ``Embedder`` that is opened and closed."""

    async def start(self) -> int:
        """Make it ready and return its dimension."""
        ...

    async def close(self) -> None:
        """Let go of it; texts that still wait are turned away."""
        ...


class Encoder(Protocol):
    """A model that is called on one thread only."""

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one unit vector per text; blocks."""
        ...


@dataclass(frozen=True, slots=True)
class _Wanted:
    texts: Sequence[str]
    reply: asyncio.Future[Sequence[Vector]]


class BatchingEmbedder:
    """``Embedder`` that gathers what arrives while the encoder is busy and encodes it as one batch.

    A lone request is encoded at once: there is no waiting for company. The encoder is made by ``load`` on its thread,
    so that its imports are paid there. ``max_batch``: texts per call of the encoder; ``max_waiting``: texts that may
    wait before callers are turned away; ``cached``: how many texts' vectors are kept.
    """

    def __init__(
        self,
        load: Callable[[], Encoder],
        *,
        metrics: Metrics,
        max_batch: int = 32,
        max_waiting: int = 2048,
        cached: int = 0,
    ) -> None:
        self._load = load
        self._metrics = metrics
        self._max_batch = max_batch
        self._max_waiting = max_waiting
        self._known = KnownVectors(VectorCache(cached), looked_up=metrics.embed_cache)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._queue: asyncio.Queue[_Wanted] = asyncio.Queue()
        self._waiting = 0
        self._worker: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Load the encoder, start batching, and give the model's dimension, found by a probe."""
        loop = asyncio.get_running_loop()
        encoder = await loop.run_in_executor(self._thread, self._load)
        self._worker = asyncio.create_task(self._serve(encoder), name="embedder")
        return len((await self.embed([_PROBE]))[0])

    async def close(self) -> None:
        """Stop; texts that still wait are turned away."""
        if self._worker:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        while not self._queue.empty():
            self._queue.get_nowait().reply.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Their vectors: kept ones, and for the rest those that the encoder makes."""
        return await self._known.of(texts, self._encoded)

    async def embed_query(self, text: str) -> Vector:
        """Embed it as any text."""
        [vector] = await self.embed([text])
        return vector

    async def _encoded(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Queue the texts for the next batch; many of them batch by batch, so that others come between."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._max_batch):
            vectors += await self._embed(texts[start : start + self._max_batch])
        return vectors

    async def _embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        if self._waiting + len(texts) > self._max_waiting:
            self._metrics.embed_refused.inc(len(texts))
            raise Unavailable("too many texts wait for their embedding", retry_after_s=1.0)
        reply: asyncio.Future[Sequence[Vector]] = asyncio.get_running_loop().create_future()
        self._waiting += len(texts)
        self._metrics.embed_waiting.inc(len(texts))
        try:
            self._queue.put_nowait(_Wanted(texts, reply))
            return await reply
        finally:
            self._waiting -= len(texts)
            self._metrics.embed_waiting.dec(len(texts))

    async def _serve(self, encoder: Encoder) -> None:
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and sum(len(wanted.texts) for wanted in batch) < self._max_batch:
                batch.append(self._queue.get_nowait())
            await self._answer(encoder, [wanted for wanted in batch if not wanted.reply.done()])

    async def _answer(self, encoder: Encoder, batch: Sequence[_Wanted]) -> None:
        loop = asyncio.get_running_loop()
        self._metrics.embed_texts.observe(sum(len(wanted.texts) for wanted in batch))
        texts = [text for wanted in batch for text in wanted.texts]
        try:
            with self._metrics.embed_seconds.time():
                vectors = await loop.run_in_executor(self._thread, encoder.encode, texts)
        except Exception as error:  # noqa: BLE001 - whatever the model raises belongs to those who wait for it
            for wanted in batch:
                _fail(wanted.reply, error)
            return
        at = 0
        for wanted in batch:
            if not wanted.reply.done():
                wanted.reply.set_result(vectors[at : at + len(wanted.texts)])
            at += len(wanted.texts)


def _fail(reply: asyncio.Future[Sequence[Vector]], error: Exception) -> None:
    if not reply.done():
        failure = DependencyError(f"the embedding model failed: {type(error).__name__}")
        failure.__cause__ = error
        reply.set_exception(failure)
