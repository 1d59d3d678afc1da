"""The collection of every adapter: name, vectors, payload indexes, and when it is not opened."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

DENSE = "dense"
SPARSE = "bm25"

_PREFIX = "memloop"
_GENERATION = "~"
_NAME = re.compile(rf"{_PREFIX}_.+_\d+(?:{_GENERATION}\d+)?")

_OLDEST_SERVER = (1, 20)
"""The first with word frequencies of a part of the collection and with substring matches."""
_SERVER_VERSION = re.compile(r"v?(\d+)\.(\d+)")

IndexKind: TypeAlias = Literal["tenant", "keyword", "datetime", "integer"]

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
    ("speaker", "keyword"),
    ("place", "integer"),
    ("valid_from", "datetime"),
    ("valid_to", "datetime"),
    ("created_at", "datetime"),
    ("expires_at", "datetime"),
    ("updated_at", "datetime"),
)
"""Made at boot, before any point. The tenant's comes first: it is in every filter."""


class EmbeddingMismatch(RuntimeError):
    """The stored vectors and the configured embedding model do not go together; the message names the way out."""


class ServerTooOld(RuntimeError):
    """The Qdrant server is older than the adapter needs; the message names both versions and the way out."""


def check_version(version: str) -> None:
    """Refuse a server older than 1.20, or one whose version cannot be read. Raises ``ServerTooOld``."""
    numbers = _SERVER_VERSION.match(version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST_SERVER:
        oldest = ".".join(map(str, _OLDEST_SERVER))
        raise ServerTooOld(
            f"the Qdrant server has version {version or 'unknown'}, but the memory store needs {oldest} or newer. "
            "Make a snapshot, then upgrade Qdrant, one minor version at a time; or set MEMLOOP_QDRANT_URL to a newer "
            "server."
        )


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

    def choose(self, names: Collection[str], serving: str | None) -> str:
        """The collection to open: the one in service, else the newest of this model's, else a new one.

        Raises ``EmbeddingMismatch`` where memories are in the collections of other models: they would seem lost.
        """
        mine = sorted((name for name in names if family(name) == self.name), key=generation)
        if serving in mine:
            return serving
        others = sorted(name for name in names if is_ours(name) and name not in mine)
        if self.start_empty or not others or (mine and serving is None):
            return mine[-1] if mine else self.name
        raise EmbeddingMismatch(
            f"memories are in {serving or ', '.join(others)}, but the embedding model is {self.model} "
            f"({self.dimension} dimensions), whose collection is {self.name}. Set MEMLOOP_EMBEDDING_MODEL back to the "
            "model that embedded them; to change the model, start with the old one and POST /v1/admin/reembed. Or set "
            "MEMLOOP_EMBEDDING_START_EMPTY=true to begin an empty collection beside the old one (its memories stay "
            "stored, unread)."
        )

    def check_dimension(self, stored: int | None) -> None:
        """Refuse a collection of another dimension under this name."""
        if stored != self.dimension:
            raise EmbeddingMismatch(
                f"collection {self.name} holds vectors of {stored} dimensions, but {self.model} gives "
                f"{self.dimension}. Move that collection away, or configure the model that made it."
            )


def is_ours(name: str) -> bool:
    """Whether a collection has a name that the store gives."""
    return _NAME.fullmatch(name) is not None


def family(name: str) -> str:
    """The name without its generation: model and dimension."""
    return name.partition(_GENERATION)[0]


def generation(name: str) -> int:
    """The generation of the collection: 1, plus 1 for every rewrite."""
    number = name.partition(_GENERATION)[2]
    return int(number) if number else 1


def successor(name: str) -> str:
    """The name of the collection after the next rewrite."""
    return f"{family(name)}{_GENERATION}{generation(name) + 1}"
