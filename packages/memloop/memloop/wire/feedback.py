"""Feedback on a memory: a client's verdict, which search and the quality audit use."""

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Wire

Verdict: TypeAlias = Literal["helpful", "wrong", "outdated"]

MAX_REASON_CHARS = 1_000


class Feedback(Wire):
    """A verdict on a memory, with the ingest time at which it was given."""

    verdict: Verdict
    reason: str | None = Field(default=None, max_length=MAX_REASON_CHARS)
    at: datetime


class FeedbackRequest(Wire):
    """``POST /v1/memory/{id}/feedback``. A null verdict withdraws the one that was given."""

    feedback: Verdict | None
    reason: str | None = Field(default=None, max_length=MAX_REASON_CHARS)
