"""The collection's name, its vectors and its payload indexes: the same for every adapter."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

DENSE = "dense"
SPARSE = "bm25"
RRF_K = 2
"""Qdrant's own constant: with it the best score, first in both lists, is 1.0."""

_PREFIX = "memloop"
_NAME = re.compile(rf"{_PREFIX}_.+_\d+")

IndexKind: TypeAlias = Literal["tenant", "keyword", "datetime"]

PAYLOAD_INDEXES: tuple[tuple[str, IndexKind], ...] = (
    ("tenant", "tenant"),
    ("user_id", "keyword"),
    ("agent_id", "keyword"),
    ("run_id", "keyword"),
    ("status", "keyword"),
    ("memory_type", "keyword"),
    ("chain", "keyword"),
    ("writes", "keyword"),
    ("tags", "keyword"),
    ("valid_from", "datetime"),
    ("valid_to", "datetime"),
    ("created_at", "datetime"),
    ("expires_at", "datetime"),
    ("updated_at", "datetime"),
)
"""Made at boot, before any point. The tenant's comes first: it is in every filter."""


class EmbeddingMismatch(RuntimeError):
    """The stored vectors and the configured embedding model do not go together; the message names the way out."""


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """A collection for one embedding model. ``start_empty`` allows a new one beside those of other models."""

    model: str
    dimension: int
    start_empty: bool = False

    @property
    def name(self) -> str:
        """``memloop_{model}_{dimension}``, safe as a folder's name."""
        slug = re.sub(r"[^a-z0-9.-]+", "_", self.model.lower()).strip("_.")
        return f"{_PREFIX}_{slug}_{self.dimension}"

    def check_neighbours(self, names: Iterable[str]) -> None:
        """Refuse to start empty beside memories that another model embedded: they would seem to be lost."""
        others = sorted(name for name in names if _NAME.fullmatch(name) and name != self.name)
        if self.name in names or not others or self.start_empty:
            return
        raise EmbeddingMismatch(
            f"memories are stored in {', '.join(others)}, but the embedding model is {self.model} "
            f"({self.dimension} dimensions), whose collection {self.name} does not exist. Set MEMLOOP_EMBEDDING_MODEL "
            "back to the model that embedded them, or set MEMLOOP_EMBEDDING_START_EMPTY=true to begin a new "
            "collection beside the old one (its memories stay on disk, unread)."
        )

    def check_dimension(self, stored: int | None) -> None:
        """Refuse a collection of another dimension under this name."""
        if stored != self.dimension:
            raise EmbeddingMismatch(
                f"collection {self.name} holds vectors of {stored} dimensions, but {self.model} gives "
                f"{self.dimension}. Move that collection away, or configure the model that made it."
            )
