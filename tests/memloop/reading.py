"""What the tests of the loops share: a document in chunks, a recorder of steps, an index over a list."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Generic, TypeVar

from memloop.ports import Chunk, HeldChunks, Recalled
from memloop.wire.memory import Source

Step = TypeVar("Step")
DAY = datetime(2026, 1, 31, tzinfo=UTC)


def chunks_of(*texts: str) -> HeldChunks:
    """Chunks that follow one another, a token for each word."""
    chunks: list[Chunk] = []
    start = 0
    for index, text in enumerate(texts):
        chunks.append(Chunk(index, start, start + len(text), text, len(text.split())))
        start += len(text)
    return HeldChunks(chunks)


class Recorder(Generic[Step]):
    """A report that keeps every step."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    async def __call__(self, step: Step) -> None:
        self.steps.append(step)

    @property
    def names(self) -> list[str]:
        return [type(step).__name__ for step in self.steps]


class ListIndex:
    """A MemoryIndex that finds the same memories whatever it is asked."""

    def __init__(self, *texts: str) -> None:
        self._found = [Recalled(f"m{number}", text, DAY, f"fact {number}") for number, text in enumerate(texts)]
        self.queries: list[str] = []

    async def search(self, query: str, *, top_k: int) -> Sequence[Recalled]:
        self.queries.append(query)
        return self._found[:top_k]


def turn(content: str, role: str = "user") -> Source:
    return Source(role=role, content=content)
