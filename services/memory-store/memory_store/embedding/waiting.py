"""What waits for the encoder: queries of people who wait, and texts that are stored."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from memory_store.embedding.vector_cache import Vector

Purpose: TypeAlias = Literal["query", "document"]
_OTHER: Final[dict[Purpose, Purpose]] = {"query": "document", "document": "query"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Texts whose vectors somebody waits for."""

    texts: Sequence[str]
    reply: asyncio.Future[Sequence[Vector]]


@dataclass(slots=True)
class _Line:
    waiting: deque[Wanted] = field(default_factory=deque[Wanted])
    texts: int = 0
    """Those being encoded too."""


class Lines:
    """Two lines, whose batches take turns: a flood of stored texts delays a query by one batch, and the reverse.

    ``max_batch``: texts in a batch, exceeded only by the last request in it; ``max_texts``: those in each line.
    """

    def __init__(self, *, max_batch: int, max_texts: int) -> None:
        self._max_batch = max_batch
        self._max_texts = max_texts
        self._lines: dict[Purpose, _Line] = {"query": _Line(), "document": _Line()}
        self._last: Purpose = "document"
        self._filled = asyncio.Event()

    def has_room(self, purpose: Purpose, texts: int) -> bool:
        """Whether so many more texts may wait."""
        return self._lines[purpose].texts + texts <= self._max_texts

    async def vectors(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Wait for the vectors. Raises what is set as the reply."""
        line, wanted = self._lines[purpose], Wanted(texts, asyncio.get_running_loop().create_future())
        line.texts += len(texts)
        line.waiting.append(wanted)
        self._filled.set()
        try:
            return await wanted.reply
        finally:
            line.texts -= len(texts)

    async def batch(self) -> list[Wanted]:
        """Wait for the next batch; without those whose callers have gone it may be empty."""
        await self._filled.wait()
        purpose = _OTHER[self._last]
        purpose = purpose if self._lines[purpose].waiting else self._last
        self._last = purpose
        waiting, batch, texts = self._lines[purpose].waiting, list[Wanted](), 0
        while waiting and texts < self._max_batch:
            wanted = waiting.popleft()
            texts += len(wanted.texts)
            if not wanted.reply.done():
                batch.append(wanted)
        if not any(line.waiting for line in self._lines.values()):
            self._filled.clear()
        return batch

    def turn_away(self) -> None:
        """Cancel all that wait."""
        for line in self._lines.values():
            while line.waiting:
                line.waiting.popleft().reply.cancel()
        self._filled.clear()
