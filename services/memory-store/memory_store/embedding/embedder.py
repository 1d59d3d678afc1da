"""A micro-batching front for an encoder that runs on one thread, and the vectors that were made lately.

Texts wait for the encoder in two lines: queries of people who wait, and texts to store.
"""

import asyncio
import hashlib
import threading
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final, Literal, TypeAlias

from prometheus_client import Counter

from memloop.wire.errors import DependencyError, Unavailable
from memory_store.embedding.port import Encoder, Vector
from memory_store.metrics import Metrics

_PROBE: Final = "How many dimensions?"


class KnownVectors:
    """The vectors of the last ``entries`` texts, as 32-bit numbers, which is what models give; texts are not kept.

    ``looked_up`` counts by ``hit`` and ``miss``.
    """

    def __init__(self, entries: int, *, looked_up: Counter) -> None:
        self._entries = entries
        self._looked_up = looked_up
        self._vectors: OrderedDict[bytes, array[float]] = OrderedDict()

    async def of(
        self, texts: Sequence[str], make: Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]
    ) -> list[Vector]:
        """Return the vectors of the texts; ``make`` makes those that are missing.

        Where there are too many, the one that was asked for longest ago goes.
        """
        known: dict[str, Vector] = {}
        for text in texts:
            if (kept := self._vectors.get(key := _key(text))) is not None:
                self._vectors.move_to_end(key)
                known[text] = tuple(kept)
        unknown = [text for text in texts if text not in known]
        self._looked_up.labels("hit").inc(len(texts) - len(unknown))
        self._looked_up.labels("miss").inc(len(unknown))
        for text, vector in zip(unknown, await make(unknown) if unknown else (), strict=True):
            known[text] = vector
            self._vectors[_key(text)] = array("f", vector)
            if len(self._vectors) > self._entries:
                self._vectors.popitem(last=False)
        return [known[text] for text in texts]


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


Purpose: TypeAlias = Literal["query", "document"]
_OTHER: Final[dict[Purpose, Purpose]] = {"query": "document", "document": "query"}


@dataclass(slots=True, eq=False)
class Wanted:
    """Texts whose vectors a caller waits for, and as many of the vectors as are made."""

    texts: Sequence[str]
    reply: asyncio.Future[Sequence[Vector]]
    vectors: list[Vector] = field(default_factory=list[Vector])
    _taken: int = 0

    def take(self, most: int) -> Sequence[str]:
        """Return the next texts to encode."""
        start, self._taken = self._taken, min(self._taken + most, len(self.texts))
        return self.texts[start : self._taken]

    @property
    def is_taken(self) -> bool:
        """Whether no text is left, or the caller has gone."""
        return self._taken == len(self.texts) or self.reply.done()

    def given(self, vectors: Sequence[Vector]) -> None:
        """Add vectors of texts that were taken; with the last ones, reply. Runs on the event loop's thread."""
        self.vectors += vectors
        if len(self.vectors) == len(self.texts) and not self.reply.done():
            self.reply.set_result(self.vectors)

    def fail(self, error: Exception) -> None:
        """Reply with an error; texts that were not taken are not encoded. Runs on the event loop's thread."""
        if not self.reply.done():
            self.reply.set_exception(error)


class Turns:
    """Computes when each request would end if all of them took turns, text by text.

    A request that is served whole, in the order of these ends, ends no later than with turns, and most end sooner: of
    two long ones that took turns, both would end at the end. Source: Friedman and Henderson, "Fairness and Efficiency
    in Web Server Protocols", SIGMETRICS 2003 (the fair sojourn protocol).
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._ends: list[float] = []

    def enter(self, texts: int) -> float:
        """Return the end of a new request, in texts that each request would have had by then."""
        end = self._now + texts
        heappush(self._ends, end)
        return end

    def served(self, texts: int) -> None:
        """Divide so many texts among the requests that would not have ended."""
        left = float(texts)
        while self._ends:
            until_next = (self._ends[0] - self._now) * len(self._ends)
            if until_next > left:
                self._now += left / len(self._ends)
                return
            left -= until_next
            self._now = heappop(self._ends)

    def over(self) -> None:
        """Forget all requests: none of them waits any more."""
        self._now = 0.0
        self._ends.clear()


@dataclass(slots=True)
class _Line:
    turns: Turns = field(default_factory=Turns)
    waiting: list[tuple[float, int, Wanted]] = field(default_factory=list[tuple[float, int, Wanted]])
    """A heap in the order of ``turns``, then of arrival."""
    arrivals: "count[int]" = field(default_factory=count)
    room: int = 0
    """What the requests take of it, those being encoded too."""

    def enter(self, wanted: Wanted) -> None:
        heappush(self.waiting, (self.turns.enter(len(wanted.texts)), next(self.arrivals), wanted))

    def batch(self, most: int) -> list[tuple[Wanted, Sequence[str]]]:
        batch: list[tuple[Wanted, Sequence[str]]] = []
        left = most
        while self.waiting and left:
            _, _, wanted = self.waiting[0]
            if not wanted.is_taken:
                texts = wanted.take(left)
                batch.append((wanted, texts))
                left -= len(texts)
            if wanted.is_taken:
                heappop(self.waiting)
        self.turns.served(most - left)
        if not self.waiting:
            self.turns.over()
        return batch


class Lines:
    """Two lines, whose batches take turns: a flood of stored texts delays a query by one batch, and the reverse.

    Callers wait on the event loop, and the encoder's thread takes batches without a turn of the loop between them.
    ``max_batch``: texts in a batch; ``max_texts``: the room of each line, of which a request takes one batch at most.
    """

    def __init__(self, *, max_batch: int, max_texts: int) -> None:
        self._max_batch = max_batch
        self._max_texts = max_texts
        self._lines: dict[Purpose, _Line] = {"query": _Line(), "document": _Line()}
        self._last: Purpose = "document"
        self._changed = threading.Condition()
        self._closed = False

    def has_room(self, purpose: Purpose, texts: int) -> bool:
        """Whether so many more texts may wait."""
        return self._lines[purpose].room + self._room_of(texts) <= self._max_texts

    async def vectors(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Wait for the vectors. Raises what is set as the reply."""
        line, wanted = self._lines[purpose], Wanted(texts, asyncio.get_running_loop().create_future())
        line.room += self._room_of(len(texts))
        with self._changed:
            line.enter(wanted)
            self._changed.notify()
        try:
            return await wanted.reply
        finally:
            line.room -= self._room_of(len(texts))

    def batch(self) -> list[tuple[Wanted, Sequence[str]]] | None:
        """Block until there is a batch: requests, and those of their texts that it holds; None once it is closed.

        Without those whose callers have gone it may be empty.
        """
        with self._changed:
            while not self._closed and not any(line.waiting for line in self._lines.values()):
                self._changed.wait()
            if self._closed:
                return None
            purpose = _OTHER[self._last]
            self._last = purpose if self._lines[purpose].waiting else self._last
            return self._lines[self._last].batch(self._max_batch)

    def close(self) -> None:
        """Let the encoder's thread end, and cancel all that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        for line in self._lines.values():
            for _, _, wanted in line.waiting:
                wanted.reply.cancel()
            line.waiting.clear()

    def _room_of(self, texts: int) -> int:
        return min(texts, self._max_batch)


_Batch: TypeAlias = Sequence[tuple[Wanted, Sequence[str]]]


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
        self._known = KnownVectors(cached, looked_up=metrics.embed_cache)
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
            if not batch:
                continue
            texts = [text for _, some in batch for text in some]
            self._metrics.embed_texts.observe(len(texts))
            try:
                with self._metrics.embed_seconds.time():
                    vectors: Sequence[Vector] | Exception = encoder.encode(texts)
            except Exception as error:  # noqa: BLE001 - whatever the model raises belongs to those who wait for it
                vectors = error
            loop.call_soon_threadsafe(_answer, batch, vectors)


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
