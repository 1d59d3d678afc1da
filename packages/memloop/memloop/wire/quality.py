"""The quality audit of a namespace: what in its live memories is suspect, by rule."""

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.feedback import Verdict
from memloop.wire.memory import Namespace

Suspicion: TypeAlias = Literal["duplicate", "contradiction", "stale", "junk"]

MAX_EXAMPLES = 50
_SHOWN_IDS = 5


class StoreAudit(Wire):
    """``POST /v1/items/audit`` of the store.

    ``stale_after_days``: also list memories that were not stated again for so long. ``examples``: shown per suspicion.
    """

    namespace: Namespace
    stale_after_days: int | None = Field(default=None, ge=1, le=36_500)
    examples: int = Field(default=10, ge=0, le=MAX_EXAMPLES)


class AuditedMemory(Wire):
    """A memory that a rule names; ``excerpt`` is the beginning of its text."""

    id: str
    key: str
    excerpt: str


class AuditExample(Wire):
    """Memories that one rule names together. ``count`` is their number, of which the first few are listed."""

    rule: str
    because: str
    count: int
    memories: tuple[AuditedMemory, ...] = Field(max_length=_SHOWN_IDS)


class AuditFinding(Wire):
    """One suspicion: the memories under it and their share of all, the number by rule, and examples.

    Of equal memories all but one count as duplicates. A memory that several rules name counts once.
    """

    suspicion: Suspicion
    memories: int
    share: float = Field(ge=0.0, le=1.0)
    by_rule: dict[str, int]
    examples: tuple[AuditExample, ...] = ()


class QualityAudit(Wire):
    """``GET /v1/memory/audit``. ``memories`` were examined, raw turns only counted.

    ``complete`` is false where the namespace has more memories than one audit examines.
    """

    user_id: str
    agent_id: str | None = None
    run_id: str | None = None
    at: datetime
    memories: int
    raw_turns: int
    complete: bool
    feedback: dict[Verdict, int]
    findings: tuple[AuditFinding, ...]
