"""The change feed: what became of which memory, without its text. The gateway and the store share these models."""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field, StringConstraints

from memloop.wire.base import Wire
from memloop.wire.memory import Scope

ChangeType: TypeAlias = Literal["memory.added", "memory.updated", "memory.deleted", "memory.erased"]
CHANGE_TYPES: Final[tuple[ChangeType, ...]] = get_args(ChangeType)
Cursor: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(?:0|latest|[0-9]{1,15}-[0-9]{1,15})$")]
"""A place in the feed: the ``id`` of a change, ``0`` before the oldest one, or ``latest`` after the newest."""
OLDEST: Final = "0"
LATEST: Final = "latest"
MOST_CHANGES: Final = 500
MOST_TENANTS: Final = 2000


class Change(Wire):
    """What became of a memory. ``reason`` names the rule or the action: ``new fact``, ``edited``, ``expired``.

    ``memory_id`` is None for an erasure, which names whose memories were erased. ``supersedes`` is the version that an
    update replaced.
    """

    type: ChangeType
    at: datetime
    reason: str
    memory_id: str | None = None
    version: int | None = None
    supersedes: str | None = None
    user_id: str
    agent_id: str | None = None
    run_id: str | None = None


class MemoryChange(Change):
    """A change with its place in the feed."""

    id: str


class ChangePage(Wire):
    """Changes, oldest first. ``cursor`` continues after them; with ``has_more`` there are some already."""

    changes: tuple[MemoryChange, ...]
    cursor: str
    has_more: bool = False


class StoreChanges(Wire):
    """``POST /v1/changes`` of the store. ``limit`` bounds the changes that are looked at, before the scope's filter."""

    scope: Scope
    after: Cursor = OLDEST
    limit: int = Field(default=100, ge=1, le=MOST_CHANGES)


class AskNewest(Wire):
    """``POST /v1/changes/newest`` of the store: the place of the newest change of each tenant."""

    tenants: tuple[str, ...] = Field(max_length=MOST_TENANTS)


class Newest(Wire):
    """The cursors by tenant; a tenant without changes is at ``0``."""

    cursors: dict[str, str]
