"""A tenant's memories page by page, and the users, agents and runs that have any: the store's own routes."""

from typing import Literal, TypeAlias

from pydantic import Field, JsonValue

from memloop.wire.base import Wire
from memloop.wire.memory import MemoryItem, Scope

MAX_DEPTH = 10_000
"""How many memories a listing reaches; a filter narrows what lies beyond."""

EntityType: TypeAlias = Literal["user", "agent", "run"]


class StoreList(Wire):
    """``POST /v1/items/list`` of the store."""

    scope: Scope
    filters: dict[str, JsonValue] | None = None
    latest_only: bool = True
    skip: int = Field(default=0, ge=0, le=MAX_DEPTH)
    limit: int = Field(default=50, ge=1, le=500)


class Listing(Wire):
    """Some memories, newest first, and how many there are in all."""

    items: tuple[MemoryItem, ...]
    total: int


class Entity(Wire):
    """A user, agent or run of which anything is stored; ``memories`` counts what a listing shows."""

    type: EntityType
    id: str
    memories: int


class Entities(Wire):
    """Users, then agents, then runs, each with the most stored first."""

    entities: tuple[Entity, ...]
