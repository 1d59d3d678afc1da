"""The lists of the public routes about memories: ``object``, ``data`` and ``has_more``, as OpenAI's lists have them.

Each also has the field that it had before, marked as deprecated, with the same content.
"""

from typing import Any, Final, Literal, Self

from pydantic import Field

from memloop.wire.changes import ChangePage, MemoryChange
from memloop.wire.history import History, ItemVersion
from memloop.wire.memory import Buffer, BufferPage, ItemPage, MemoryItem, SearchHit, SearchResult
from memloop.wire.memory_events import EventPage, MemoryEvent

_OLD: Final[dict[str, Any]] = {"deprecated": True}
MOST_BUFFERS: Final = 1000
"""A list of buffers has no more."""


class FoundMemory(MemoryItem):
    """A found memory with its score: a cosine plus boosts, higher is better; the breakdown names its parts."""

    score: float
    score_breakdown: dict[str, float] = Field(default_factory=dict[str, float])

    @classmethod
    def of(cls, hit: SearchHit) -> "FoundMemory":
        """Return the hit in one level. It is not validated again: it comes from a validated model."""
        return cls.model_construct(**vars(hit.item), score=hit.score, score_breakdown=hit.score_breakdown)


class FoundMemories(SearchResult):
    """``POST /v1/memory/search``: memories, best first, and turns that may become memories."""

    object: Literal["list"] = "list"
    data: tuple[FoundMemory, ...]
    has_more: Literal[False] = False
    results: tuple[SearchHit, ...] = Field(
        default=(), description="Use `data`, without a level between.", json_schema_extra=_OLD
    )

    @classmethod
    def of(cls, found: SearchResult) -> Self:
        """Return the store's hits as a list."""
        return cls.model_construct(**vars(found), data=tuple(FoundMemory.of(hit) for hit in found.results))


class MemoryList(ItemPage):
    """``GET /v1/memory``: a page of memories. ``next_cursor`` leads to the next page, and is None on the last."""

    object: Literal["list"] = "list"
    data: tuple[MemoryItem, ...]
    has_more: bool = False
    items: tuple[MemoryItem, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, page: ItemPage) -> Self:
        """Return the store's page as a list."""
        return cls.model_construct(**vars(page), data=page.items, has_more=page.next_cursor is not None)


class EventList(EventPage):
    """``GET /v1/memory/events``: the newest writes first."""

    object: Literal["list"] = "list"
    data: tuple[MemoryEvent, ...]
    has_more: bool = False
    events: tuple[MemoryEvent, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, events: tuple[MemoryEvent, ...], *, limit: int) -> Self:
        """Return at most ``limit`` of the events; ``has_more`` if there are others."""
        shown = events[:limit]
        return cls.model_construct(data=shown, has_more=len(events) > limit, events=shown)


class BufferList(BufferPage):
    """``GET /v1/memory/buffers``: the buffers of a tenant or a user, at most 1,000."""

    object: Literal["list"] = "list"
    data: tuple[Buffer, ...]
    has_more: bool = False
    buffers: tuple[Buffer, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, page: BufferPage) -> Self:
        """Return the store's buffers as a list."""
        buffers = page.buffers
        return cls.model_construct(data=buffers, has_more=len(buffers) >= MOST_BUFFERS, buffers=buffers)


class VersionList(History):
    """``GET /v1/memory/{id}/history``: all versions, oldest first."""

    object: Literal["list"] = "list"
    data: tuple[ItemVersion, ...]
    has_more: Literal[False] = False
    versions: tuple[ItemVersion, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, history: History) -> Self:
        """Return the store's history as a list."""
        return cls.model_construct(data=history.versions, versions=history.versions)


class ChangeList(ChangePage):
    """``GET /v1/memory/changes``: changes, oldest first; ``cursor`` continues after them."""

    object: Literal["list"] = "list"
    data: tuple[MemoryChange, ...]
    changes: tuple[MemoryChange, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, page: ChangePage) -> Self:
        """Return the store's page as a list."""
        return cls.model_construct(**vars(page), data=page.changes)
