"""What the store needs from an embedding model: unit vectors of texts."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Vector: TypeAlias = tuple[float, ...]


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
