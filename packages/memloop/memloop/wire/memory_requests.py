"""Bodies of the gateway's public memory routes, their lists, and a user's profile.

Lists are ``object``, ``data`` and ``has_more``, as OpenAI's have them. Each also has the field that it had before,
marked as deprecated, with the same content.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, AwareDatetime, Field, JsonValue
from pydantic.config import JsonDict

from memloop.wire.base import Wire
from memloop.wire.changes import ChangePage, MemoryChange
from memloop.wire.fields import Metadata, Moment, check_keys
from memloop.wire.lists import Listed
from memloop.wire.memory import (
    MAX_BATCH_STATEMENTS,
    Buffer,
    BufferPage,
    ItemPage,
    MemoryItem,
    SearchHit,
    SearchOptions,
    SearchResult,
    Source,
    Status,
    StoreSearch,
    UserFields,
)
from memloop.wire.memory_events import EventPage, MemoryEvent
from memloop.wire.store_requests import History, ItemVersion

_OLD: Final[dict[str, Any]] = {"deprecated": True}
MOST_BUFFERS: Final = 1000
"""A list of buffers has no more."""


class MemoryChanged(Wire):
    """What a key that may not read memories is shown of one that it changed."""

    id: str
    version: int
    status: Status

    @classmethod
    def of(cls, item: MemoryItem) -> Self:
        return cls(id=item.id, version=item.version, status=item.status)


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
        return cls.model_construct(**vars(found), data=tuple(FoundMemory.of(hit) for hit in found.results))


class MemoryList(Listed[MemoryItem], ItemPage):
    """``GET /v1/memory``: a page of memories. ``next_cursor`` leads to the next page, and is None on the last."""

    items: tuple[MemoryItem, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, page: ItemPage) -> Self:
        return cls.model_construct(**vars(page), data=page.items, has_more=page.next_cursor is not None)


class EventList(Listed[MemoryEvent], EventPage):
    """``GET /v1/memory/events``: the newest writes first."""

    events: tuple[MemoryEvent, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, events: tuple[MemoryEvent, ...], *, limit: int) -> Self:
        """Return at most ``limit`` of the events; ``has_more`` if there are others."""
        shown = events[:limit]
        return cls.model_construct(data=shown, has_more=len(events) > limit, events=shown)


class BufferList(Listed[Buffer], BufferPage):
    """``GET /v1/memory/buffers``: the buffers of a tenant or a user, at most 1,000."""

    buffers: tuple[Buffer, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, page: BufferPage) -> Self:
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
        return cls.model_construct(data=history.versions, versions=history.versions)


class ChangeList(Listed[MemoryChange], ChangePage):
    """``GET /v1/memory/changes``: changes, oldest first; ``cursor`` continues after them."""

    changes: tuple[MemoryChange, ...] = Field(default=(), description="Use `data`.", json_schema_extra=_OLD)

    @classmethod
    def of(cls, page: ChangePage) -> Self:
        return cls.model_construct(**vars(page), data=page.changes)


_SOME_TEXT: JsonDict = {"contains": {"properties": {"content": {"pattern": r"\S"}}}}


class BatchedAdd(UserFields):
    """One add of a batch: its texts are stored verbatim."""

    messages: tuple[Source, ...] = Field(min_length=1, max_length=200, json_schema_extra=_SOME_TEXT)
    metadata: Annotated[Metadata, AfterValidator(check_keys)] = Field(default_factory=dict[str, JsonValue])
    timestamp: Moment | None = None
    expires_at: Moment | None = None


class MemoryAdd(BatchedAdd):
    """``POST /v1/memory/add``. ``infer`` runs the MemReader loop; ``sync`` waits for it."""

    infer: bool = True
    sync: bool = False


def _few_messages(adds: tuple[BatchedAdd, ...]) -> tuple[BatchedAdd, ...]:
    if sum(len(add.messages) for add in adds) > MAX_BATCH_STATEMENTS:
        raise ValueError(f"a batch has at most {MAX_BATCH_STATEMENTS} messages in all its adds")
    return adds


class MemoryBatch(Wire):
    """``POST /v1/memory/batch``: many adds, of any users, at once."""

    adds: Annotated[tuple[BatchedAdd, ...], AfterValidator(_few_messages)] = Field(min_length=1, max_length=500)


class MemorySearch(SearchOptions, UserFields):
    """``POST /v1/memory/search``. ``category`` finds the memories of one category alone."""

    category: str | None = Field(default=None, min_length=1, max_length=64)

    def in_tenant(self, tenant: str) -> StoreSearch:
        """Return the store's search for it."""
        options = self.model_dump(exclude={*UserFields.model_fields, "category", "filters"})
        filters = self.filters
        if self.category is not None:
            within = in_category(self.category)
            both: dict[str, JsonValue] = {"AND": [within, filters]}
            filters = within if filters is None else both
        return StoreSearch(namespace=self.namespace(tenant), filters=filters, **options)


PINNED: Final = "pinned"
"""The tag of memories that come first in a profile."""
UNSORTED: Final = "other"
"""The category of memories without a tag."""


def in_category(category: str) -> dict[str, JsonValue]:
    """Return the filter of a category's memories."""
    tagged: dict[str, JsonValue] = {"tags": {"in": [category]}}
    return {"OR": [tagged, {"tags": None}]} if category == UNSORTED else tagged


class ProfileFact(Wire):
    """A memory in a profile."""

    id: str
    memory: str
    pinned: bool = False
    valid_from: AwareDatetime


class ProfileCategory(Wire):
    """The facts of one category: pinned ones first, then the newest. A memory's first tag names its category."""

    name: str
    facts: tuple[ProfileFact, ...]


class UserProfile(Wire):
    """``GET /v1/memory/profile``: categories with pinned facts first, then those with the newest.

    ``tokens`` are those of the facts' texts; ``left_out`` counts memories that did not fit.
    """

    user_id: str
    agent_id: str | None = None
    run_id: str | None = None
    categories: tuple[ProfileCategory, ...]
    tokens: int
    left_out: int = 0
