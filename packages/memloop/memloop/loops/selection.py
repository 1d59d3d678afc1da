"""Some chunks of a document, as a document of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

from memloop.ports import Chunk, Chunks, Span


@dataclass(frozen=True, slots=True)
class Selection:
    """The chunks of ``source`` at ``positions``, in that order; each keeps its number in the document."""

    source: Chunks
    positions: Sequence[int]

    def __len__(self) -> int:
        return len(self.positions)

    def span(self, index: int) -> Span:
        """See ``Chunks``."""
        return self.source.span(self.positions[index])

    async def chunk(self, index: int) -> Chunk:
        """See ``Chunks``."""
        return await self.source.chunk(self.positions[index])
