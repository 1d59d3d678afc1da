"""The state of a memory write, and the decisions of the memory writer."""

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.memory import Usage, Written

Action: TypeAlias = Literal["search", "add", "relate", "buffer", "ignore", "invalid"]
EventStatus: TypeAlias = Literal["queued", "in_progress", "completed", "failed"]


class DecisionRecord(Wire):
    """One turn of the memory writer: what it did and why, in its own words; ``note`` is ours on its output's form."""

    action: Action
    reason: str = ""
    reasoning: str = ""
    query: str | None = None
    parse_path: Literal["native", "fallback", "repaired", "failed"] = "native"
    note: str = ""


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


class EventPage(Wire):
    """Newest events first."""

    events: tuple[MemoryEvent, ...]
