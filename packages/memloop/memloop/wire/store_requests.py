"""Bodies of the store's own routes beside searches and writes.

They list a tenant's memories page by page, and the users, agents and runs that have any; export and import memories as
lines of a file; find stored memories that are like drafts; compare texts; and show what happened to a memory. A recall
reads a part of a search's answer.
"""

import operator
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import AwareDatetime, ConfigDict, Field, JsonValue

from memloop.wire.base import FirstFault, Integral, Wire
from memloop.wire.memory import MemoryDraft, MemoryItem, NamedTime, Namespace, PendingTurn, Scope

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


MAX_LINES = 200


class MemoryLine(Wire):
    """One version of a memory; ``confirmed_at`` is the event time of its last statement. Vectors are computed again.

    ``state_of`` is the id of the memory whose text was edited and had been this one.
    """

    item: MemoryItem
    confirmed_at: AwareDatetime
    state_of: str | None = Field(default=None, exclude_if=operator.not_)


class StoreExport(Wire):
    """``POST /v1/items/export`` of the store: a page of a scope's versions, in the order of ids."""

    scope: Scope
    include_raw: bool = False
    latest_only: bool = False
    cursor: str | None = None
    limit: int = Field(default=MAX_LINES, ge=1, le=500)


class ExportPage(Wire):
    """A page of lines; ``next_cursor`` is None on the last."""

    lines: tuple[MemoryLine, ...]
    next_cursor: str | None = None


class NumberedLine(Wire):
    """A line of a file as it was sent; the first has number 1."""

    number: int
    text: str


class StoreImport(Wire):
    """``POST /v1/items/import`` of the store: lines that are to be this tenant's, whosever they were.

    ``began`` is the newest fencing token when the request was accepted: lines of users erased since are refused.
    """

    began: int | None = None

    tenant: str = Field(min_length=1, max_length=256)
    lines: tuple[NumberedLine, ...] = Field(min_length=1, max_length=MAX_LINES)


class LineError(Wire):
    """Why a line was not imported."""

    line: int
    message: str


class Imported(Wire):
    """Counts of the lines that are new, known already, or refused, with the first errors."""

    imported: int = 0
    unchanged: int = 0
    failed: int = 0
    errors: tuple[LineError, ...] = ()


class StoreNeighbours(Wire):
    """``POST /v1/items/neighbours`` of the store: finds the live memories near each draft.

    ``at_least`` is the least cosine between a draft and a neighbour.
    """

    namespace: Namespace
    drafts: tuple[MemoryDraft, ...] = Field(min_length=1, max_length=100)
    at_least: float = Field(default=0.5, ge=-1.0, le=1.0)
    top_k: Annotated[int, Integral] = Field(default=3, ge=1, le=10)


class Neighbours(Wire):
    """The live memories near each draft, nearest first, in the order of the drafts."""

    neighbours: tuple[tuple[MemoryItem, ...], ...]


MOST_STATEMENTS = 8
MOST_PASSAGES = 8
MOST_CHARS = 2000

ComparedText = Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]


class Comparison(Wire):
    """A statement and the passages that may say the same."""

    statement: ComparedText
    passages: tuple[ComparedText, ...] = Field(min_length=1, max_length=MOST_PASSAGES)


class StoreSimilarities(Wire):
    """``POST /v1/similarities`` of the store: compares texts by its embedding model. Nothing of them is stored."""

    comparisons: tuple[Comparison, ...] = Field(min_length=1, max_length=MOST_STATEMENTS)


class Similarities(Wire):
    """For each statement the cosine with each of its passages, in order."""

    similarities: tuple[tuple[float, ...], ...]


class VersionChange(Wire):
    """Why a version came to be or was changed. ``rule`` is the store's name for it, ``because`` the same in words.

    ``other`` is the version that it was compared with or that took its place; ``similarity`` the cosine, where texts
    and not keys were compared; ``at`` ingest time.
    """

    rule: str
    because: str
    at: datetime
    other: str | None = None
    similarity: float | None = None


class ItemVersion(MemoryItem):
    """A version with what happened to it, oldest first."""

    changes: tuple[VersionChange, ...] = ()


class History(Wire):
    """All versions of one item, oldest first."""

    versions: tuple[ItemVersion, ...]


class _Part(FirstFault):
    """A part of the store's answer: all other fields are left unread."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class RecalledItem(_Part):
    """The fields of a found memory that a prompt shows."""

    id: str
    memory: str
    valid_from: datetime
    times: tuple[NamedTime, ...] = ()


class RecalledHit(_Part):
    """A hit without its score."""

    item: RecalledItem


class RecallResult(_Part):
    """A ``SearchResult`` of which a recall reads so much. To read all of ten hits takes four times as long."""

    results: tuple[RecalledHit, ...]
    pending: tuple[PendingTurn, ...] = ()
    pending_complete: bool = True
    degraded: bool = False
