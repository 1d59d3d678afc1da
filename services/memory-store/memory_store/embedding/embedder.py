"""Dense vectors of texts: the port, and a micro-batching front for an encoder that runs on one thread."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from memloop.wire.errors import DependencyError, Unavailable
from memory_store.embedding.vector_cache import KnownVectors, Vector, VectorCache
from memory_store.embedding.waiting import Lines, Purpose, Wanted
from memory_store.metrics import Metrics

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
        """Release the model; texts that still wait are refused."""
        ...


class Encoder(Protocol):
    """A model that is called on one thread only."""

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one unit vector per text; blocks."""
        ...


class BatchingEmbedder:
    """``Embedder`` that gathers what arrives while the encoder is busy and encodes it as one batch.

    A lone request is encoded at once: there is no waiting for company. The encoder is made by ``load`` on its thread,
    so that its imports are paid there. ``max_batch``: texts per call of the encoder; ``max_waiting``: how many texts
    to store, and as many queries, may wait before callers are turned away; ``cached``: how many vectors are kept.
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
        self._known = KnownVectors(VectorCache(cached), looked_up=metrics.embed_cache)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._lines = Lines(max_batch=max_batch, max_texts=max_waiting)
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
        self._lines.turn_away()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Their vectors: kept ones, and for the rest those that the encoder makes."""
        return await self._known.of(texts, partial(self._encoded, purpose="document"))

    async def embed_query(self, text: str) -> Vector:
        """Embed it as any text, but before those that are only stored."""
        [vector] = await self._known.of([text], partial(self._encoded, purpose="query"))
        return vector

    async def _encoded(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Queue the texts for the next batch; many of them batch by batch, so that others come between."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._max_batch):
            vectors += await self._embed(texts[start : start + self._max_batch], purpose)
        return vectors

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        if not self._lines.has_room(purpose, len(texts)):
            self._metrics.embed_refused.inc(len(texts))
            raise Unavailable("too many texts wait for their embedding", retry_after_s=1.0)
        self._metrics.embed_waiting.inc(len(texts))
        try:
            return await self._lines.vectors(texts, purpose)
        finally:
            self._metrics.embed_waiting.dec(len(texts))

    async def _serve(self, encoder: Encoder) -> None:
        while True:
            await self._answer(encoder, await self._lines.batch())

    async def _answer(self, encoder: Encoder, batch: Sequence[Wanted]) -> None:
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
