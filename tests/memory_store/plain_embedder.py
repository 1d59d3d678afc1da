"""An embedder over an encoder, at once and without a thread."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_store.embedding.port import Encoder, Vector


@dataclass(frozen=True)
class PlainEmbedder:
    """Calls the encoder."""

    encoder: Encoder

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The encoder's vectors."""
        return self.encoder.encode(texts)

    async def embed_query(self, text: str) -> Vector:
        """The encoder's vector."""
        return self.encoder.encode([text])[0]
