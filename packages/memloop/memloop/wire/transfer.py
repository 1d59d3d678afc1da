"""Memories as lines of a file: what an export gives and an import takes."""

from pydantic import AwareDatetime, Field

from memloop.wire.base import Wire
from memloop.wire.memory import MemoryItem, Scope

MAX_LINES = 200


class MemoryLine(Wire):
    """One version of a memory; ``confirmed_at`` is the event time of its last statement. Vectors are computed again."""

    item: MemoryItem
    confirmed_at: AwareDatetime


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
