"""Texts that wait for the encoder, queries of people who wait before texts to store; and the vectors made lately."""

import asyncio
import hashlib
import threading
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final, Literal, TypeAlias

from prometheus_client import Counter

Vector: TypeAlias = tuple[float, ...]


class VectorCache:
    """The last ``entries`` texts, as 32-bit numbers, which is what models give; texts themselves are not kept."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._vectors: OrderedDict[bytes, array[float]] = OrderedDict()

    def get(self, text: str) -> Vector | None:
        """Return the text's vector, if it is here; it is then the last to go."""
        key = _key(text)
        found = self._vectors.get(key)
        if found is None:
            return None
        self._vectors.move_to_end(key)
        return tuple(found)

    def put(self, text: str, vector: Vector) -> None:
        """Keep it; the one that was asked for longest ago goes when there are too many."""
        self._vectors[_key(text)] = array("f", vector)
        if len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)


class KnownVectors:
    """The vectors of texts, from the cache where it has them. ``looked_up`` counts by ``hit`` and ``miss``."""

    def __init__(self, cache: VectorCache, *, looked_up: Counter) -> None:
        self._cache = cache
        self._looked_up = looked_up

    async def of(
        self,
        texts: Sequence[str],
        make: Callable[[Sequence[str]], Awaitable[Sequence[Vector]]],
    ) -> list[Vector]:
        """Return the vectors of the texts; ``make`` makes those that are missing."""
        known = {text: vector for text in texts if (vector := self._cache.get(text)) is not None}
        unknown = [text for text in texts if text not in known]
        self._looked_up.labels("hit").inc(len(texts) - len(unknown))
        self._looked_up.labels("miss").inc(len(unknown))
        for text, vector in zip(unknown, await make(unknown) if unknown else (), strict=True):
            known[text] = vector
            self._cache.put(text, vector)
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
