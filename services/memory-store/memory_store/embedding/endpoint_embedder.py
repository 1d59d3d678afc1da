"""Dense vectors from an OpenAI-compatible ``/v1/embeddings``, which may stall, fail or change under way."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memloop.wire.errors import DependencyError, Timeout, Unavailable
from memloop_clients.balancing.replica import Breaker, CircuitOpen
from memloop_clients.model_endpoint import EmbeddingsClient, InputRefused
from memory_store.embedding.embedder import KnownVectors
from memory_store.embedding.port import Vector
from memory_store.metrics import Metrics
from memory_store.vectors.schema import EmbeddingMismatch

_PROBE: Final = "How many dimensions?"
_LANES: Final = 4
_SHORTEST_CHARS: Final = 64
_FIRST_PAUSE_S: Final = 0.1
_GROWTH: Final = 4.0
_log = logging.getLogger(__name__)


class EmbeddingEndpointAway(RuntimeError):
    """The endpoint did not answer at the start; the message names the way out."""


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """``timeout_s`` for a batch with its ``attempts``, ``query_timeout_s`` for the text of a search.

    ``max_batch``: texts per request; ``max_waiting``: texts under way before callers are turned away; ``cached``: how
    many texts' vectors are kept.
    """

    timeout_s: float = 30.0
    query_timeout_s: float = 1.0
    attempts: int = 3
    max_batch: int = 32
    max_waiting: int = 2048
    cached: int = 0


class EndpointEmbedder:
    """``EmbeddingModel`` of a remote model. ``dimension`` is the expected one; None: the first answer's.

    A text that the endpoint refuses is sent again without its second half: models limit tokens, which only the
    endpoint can count. A vector of another dimension is a failure, since it cannot be compared with the stored ones.
    """

    def __init__(
        self,
        endpoint: EmbeddingsClient,
        breaker: Breaker,
        *,
        metrics: Metrics,
        dimension: int | None = None,
        limits: EndpointLimits | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._breaker = breaker
        self._metrics = metrics
        self._dimension = dimension
        self._limits = limits or EndpointLimits()
        self._pause = pause
        self._known = KnownVectors(self._limits.cached, looked_up=metrics.embed_cache)
        self._waiting = 0

    async def start(self) -> int:
        """Ask for one vector, and return its dimension.

        An endpoint that is away stops the start unless the dimension is set. Raises ``EmbeddingEndpointAway``,
        ``EmbeddingMismatch``.
        """
        expected, self._dimension = self._dimension, None
        try:
            [vector] = await self._batch([_PROBE])
        except (Unavailable, Timeout) as error:
            if expected is None:
                raise EmbeddingEndpointAway(
                    f"{error.message}. Start the endpoint that MEMLOOP_EMBEDDING_URL names, or set "
                    "MEMLOOP_EMBEDDING_DIMENSION to start without it: searches then go by words, adds wait."
                ) from error
            _log.warning("%s: searches go by words and adds wait until it does", error.message)
            self._dimension = expected
            return expected
        except DependencyError as error:
            raise EmbeddingEndpointAway(
                f"{error.message}. Check MEMLOOP_EMBEDDING_URL, MEMLOOP_EMBEDDING_MODEL and MEMLOOP_EMBEDDING_API_KEY."
            ) from error
        self._dimension = len(vector)
        if expected not in {None, len(vector)}:
            raise EmbeddingMismatch(
                f"the embedding endpoint gives vectors of {len(vector)} dimensions, but MEMLOOP_EMBEDDING_DIMENSION is "
                f"{expected}. Configure the model that gives {expected}; to change the model, start with the old one "
                "and POST /v1/admin/reembed. Or correct the setting if nothing is stored yet."
            )
        return len(vector)

    async def close(self) -> None:
        await self._endpoint.close()

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Their vectors: kept ones, and for the rest those of the endpoint, a few batches at a time."""
        return await self._known.of(texts, lambda texts: self._taken(texts, self._in_lanes))

    async def embed_query(self, text: str) -> Vector:
        """Embed a text within ``query_timeout_s``. Raises ``DependencyError``."""
        [vector] = await self._known.of([text], lambda texts: self._taken(texts, self._query))
        return vector

    async def _taken(
        self, texts: Sequence[str], work: Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]
    ) -> Sequence[Vector]:
        """Count the texts while they are under way. Raises ``Unavailable`` when there are too many."""
        if self._waiting and self._waiting + len(texts) > self._limits.max_waiting:
            self._metrics.embed_refused.inc(len(texts))
            raise Unavailable("too many texts wait for their embedding", retry_after_s=1.0)
        self._waiting += len(texts)
        self._metrics.embed_waiting.inc(len(texts))
        try:
            return await work(texts)
        finally:
            self._waiting -= len(texts)
            self._metrics.embed_waiting.dec(len(texts))

    async def _in_lanes(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Raises the first error of a batch, once the batches that run have ended."""
        size = self._limits.max_batch
        batches = [texts[at : at + size] for at in range(0, len(texts), size)]
        lanes = asyncio.Semaphore(_LANES)

        async def one(batch: Sequence[str]) -> Sequence[Vector]:
            async with lanes:
                return await self._batch(batch)

        answers = await asyncio.gather(*map(one, batches), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [vector for answer in answers if not isinstance(answer, BaseException) for vector in answer]

    async def _query(self, texts: Sequence[str]) -> Sequence[Vector]:
        until = time.monotonic() + self._limits.query_timeout_s
        try:
            return await self._repeated(texts, until=until, attempts=1)
        except InputRefused:
            return [await self._cut(text, until=until, attempts=1) for text in texts]

    async def _batch(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Embed one batch; text by text where the endpoint refuses it."""
        limits = self._limits
        try:
            return await self._repeated(texts, until=time.monotonic() + limits.timeout_s, attempts=limits.attempts)
        except InputRefused:
            attempts, timeout_s = limits.attempts, limits.timeout_s
            return [await self._cut(text, until=time.monotonic() + timeout_s, attempts=attempts) for text in texts]

    async def _cut(self, text: str, *, until: float, attempts: int) -> Vector:
        """Embed a text, or the longest half, quarter, … of it that the endpoint takes."""
        while True:
            try:
                [vector] = await self._repeated([text], until=until, attempts=attempts)
            except InputRefused:
                if len(text) <= _SHORTEST_CHARS:
                    raise
                text = text[: len(text) // 2]
            else:
                return vector

    async def _repeated(self, texts: Sequence[str], *, until: float, attempts: int) -> Sequence[Vector]:
        """Ask again after an outage, with pauses that grow, while time is left for it."""
        pause_s = _FIRST_PAUSE_S

        async def probe() -> None:
            await self._asked([_PROBE], within_s=within_s)

        while True:
            within_s = (until - time.monotonic()) / attempts
            try:
                await self._breaker.admit(probe)
                self._metrics.embed_texts.observe(len(texts))
                with self._metrics.embed_seconds.time(), self._breaker.watching():
                    return await self._asked(texts, within_s=within_s)
            except CircuitOpen:
                raise
            except (Unavailable, Timeout) as error:
                attempts -= 1
                wait_s = max(pause_s * random.uniform(1.0, 1.5), error.retry_after_s or 0.0)
                if not attempts or time.monotonic() + wait_s >= until:
                    raise
                await self._pause(wait_s)
                pause_s *= _GROWTH

    async def _asked(self, texts: Sequence[str], *, within_s: float) -> Sequence[Vector]:
        vectors = await self._endpoint.vectors(texts, within_s=within_s)
        expected = self._dimension or len(vectors[0])
        for vector in vectors:
            if len(vector) != expected:
                raise DependencyError(
                    f"the embedding endpoint gives {len(vector)} dimensions, the stored vectors have {expected}",
                    code="embedding_dimension_changed",
                )
        return vectors
