"""Keeps embeddings in a file between runs, because runs embed the same texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from memory_store.embedding.port import Vector
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, SentenceEncoder


class CachedEmbedder:
    """An ``Embedder`` of the default model. The file is for one precision; delete it when the model changes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _loaded(file)
        self._fresh = False
        self._encoder: SentenceEncoder | None = None

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Embed the texts, one vector each, in order."""
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        if missing:
            self._encoder = self._encoder or SentenceEncoder(DEFAULT_MODEL, threads=1, batch=32)
            self._known |= dict(zip(missing, self._encoder.encode(missing), strict=True))
            self._fresh = True
        return [self._known[text] for text in texts]

    async def embed_query(self, text: str) -> Vector:
        """Embed a question as any text."""
        return (await self.embed([text]))[0]

    def save(self) -> None:
        """Write the new embeddings."""
        if self._fresh:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            vectors = np.asarray(list(self._known.values()), dtype=np.float32)
            np.savez(self._file, texts=np.asarray(list(self._known)), vectors=vectors)


def _loaded(file: Path) -> dict[str, Vector]:
    if not file.is_file():
        return {}
    with np.load(file) as kept:
        rows = cast("list[list[float]]", kept["vectors"].tolist())
        texts = cast("list[str]", kept["texts"].tolist())
    return {text: tuple(row) for text, row in zip(texts, rows, strict=True)}
