"""Dense vectors of texts: the port, and a micro-batching front for an encoder that runs on one thread."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from memloop.wire.errors import DependencyError, Unavailable
from memory_store.embedding.waiting import KnownVectors, Lines, Purpose, Vector, VectorCache, Wanted
from memory_store.metrics import Metrics

_PROBE = "How many dimensions?"
_Batch: TypeAlias = Sequence[tuple[Wanted, Sequence[str]]]


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
    so that its imports are paid there, and takes one batch after the other there, however busy the event loop is.
    ``max_batch``: texts per call of the encoder; ``max_waiting``: how many texts to store, and as many queries, may
    wait before callers are turned away, of each caller one batch at most; ``cached``: how many vectors are kept.
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
        self._known = KnownVectors(VectorCache(cached), looked_up=metrics.embed_cache)
        self._lines = Lines(max_batch=max_batch, max_texts=max_waiting)
        self._thread: threading.Thread | None = None

    async def start(self) -> int:
        """Load the encoder, start batching, and give the model's dimension, found by a probe."""
        loop = asyncio.get_running_loop()
        loaded: asyncio.Future[None] = loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(loop, loaded), name="embedder", daemon=True)
        self._thread.start()
        await loaded
        return len((await self.embed([_PROBE]))[0])

    async def close(self) -> None:
        """Stop; texts that still wait are turned away."""
        self._lines.close()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Their vectors: kept ones, and for the rest those that the encoder makes."""
        return await self._known.of(texts, partial(self._encoded, purpose="document"))

    async def embed_query(self, text: str) -> Vector:
        """Embed it as any text, but before those that are only stored."""
        [vector] = await self._known.of([text], partial(self._encoded, purpose="query"))
        return vector

    async def _encoded(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Queue the texts for the next batches."""
        if not self._lines.has_room(purpose, len(texts)):
            self._metrics.embed_refused.inc(len(texts))
            raise Unavailable("too many texts wait for their embedding", retry_after_s=1.0)
        self._metrics.embed_waiting.inc(len(texts))
        try:
            return await self._lines.vectors(texts, purpose)
        finally:
            self._metrics.embed_waiting.dec(len(texts))

    def _run(self, loop: asyncio.AbstractEventLoop, loaded: "asyncio.Future[None]") -> None:
        """Be the encoder's thread."""
        try:
            encoder = self._load()
        except BaseException as error:  # noqa: BLE001 - whatever the model raises belongs to the one who starts it
            loop.call_soon_threadsafe(_settle, loaded, error)
            return
        loop.call_soon_threadsafe(_settle, loaded, None)
        while (batch := self._lines.batch()) is not None:
            if batch:
                loop.call_soon_threadsafe(_answer, batch, self._vectors_of(batch, encoder))

    def _vectors_of(self, batch: _Batch, encoder: Encoder) -> Sequence[Vector] | Exception:
        texts = [text for _, some in batch for text in some]
        self._metrics.embed_texts.observe(len(texts))
        try:
            with self._metrics.embed_seconds.time():
                return encoder.encode(texts)
        except Exception as error:  # noqa: BLE001 - whatever the model raises belongs to those who wait for it
            return error


def _settle(loaded: "asyncio.Future[None]", error: BaseException | None) -> None:
    if loaded.done():
        return
    if error is None:
        loaded.set_result(None)
    else:
        loaded.set_exception(error)


def _answer(batch: _Batch, vectors: Sequence[Vector] | Exception) -> None:
    at = 0
    for wanted, texts in batch:
        if isinstance(vectors, Exception):
            failure = DependencyError(f"the embedding model failed: {type(vectors).__name__}")
            failure.__cause__ = vectors
            wanted.fail(failure)
        else:
            wanted.given(vectors[at : at + len(texts)])
        at += len(texts)
