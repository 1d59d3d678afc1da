"""The state of a memory write, and the decisions of the memory writer."""

import operator
from datetime import datetime
from typing import Final, Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.memory import Usage, Written

Action: TypeAlias = Literal["search", "add", "relate", "buffer", "ignore", "invalid"]
EventStatus: TypeAlias = Literal["queued", "in_progress", "completed", "kept_verbatim", "failed"]
"""``kept_verbatim``: the memory writer gave no usable decision on some turns, which became memories as they are."""
ENDED: Final = frozenset[EventStatus]({"completed", "kept_verbatim", "failed"})
MAX_REPLY_CHARS: Final = 2000


class DecisionRecord(Wire):
    """One turn of the memory writer: what it did and why, in its own words; ``note`` is ours on its output's form."""

    action: Action
    reason: str = ""
    reasoning: str = ""
    query: str | None = None
    parse_path: Literal["native", "fallback", "repaired", "failed"] = "native"
    note: str = ""
    reply: str = Field(default="", exclude_if=operator.not_)
    """The beginning of a reply that held no usable decision, the last one; left out of the JSON elsewhere."""


class MemoryEvent(Wire):
    """The state of one write: ``GET /v1/memory/events/{event_id}``."""

    event_id: str
    status: EventStatus
    user_id: str
    created_at: datetime
    completed_at: datetime | None = None
    attempts: int = 0
    decisions: tuple[DecisionRecord, ...] = ()
    memories: tuple[Written, ...] = ()
    usage: Usage = Usage()
    redacted: dict[str, int] = Field(default_factory=dict[str, int])
    """The number of values that were redacted before the write was queued, by kind."""
    error: str | None = None
    redecided: int = Field(default=0, exclude_if=operator.not_)
    """How often a write that was kept verbatim was decided again; left out of the JSON where it never was."""


class EventPage(Wire):
    """Newest events first."""

    events: tuple[MemoryEvent, ...]
