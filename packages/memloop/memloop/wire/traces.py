"""Traces: what a loop was shown and what it said, for training. Kept for tenants that asked for it, redacted.

``GET /v1/admin/traces`` gives one a line; the trainer reads them (``python -m trainer data from-traces``).
"""

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.chat import ChatMessage, Json, ToolCall
from memloop.wire.keys import TENANT_PATTERN
from memloop.wire.memory import Source, Usage
from memloop.wire.memory_events import Action, DecisionRecord

TraceKind: TypeAlias = Literal["memory_write", "long_read"]


class TracedCall(Wire):
    """One call: the messages as the model saw them, and its reply as the loop took it."""

    messages: tuple[ChatMessage, ...]
    with_tools: bool = False
    thinking: bool = False
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"


class TracedAnswer(Wire):
    """A read's answer to one of its questions, right or wrong."""

    question: str
    answer: str
    boxed: bool


class HeldMemory(Wire):
    """A memory that the store held and a search of the loop found."""

    id: str
    text: str
    valid_from: datetime
    key: str = ""


class Trace(Wire):
    """One run of a loop. ``profile`` and ``model`` say what was served; ``tools`` are those of the calls with tools.

    Of a memory write: the ``turns`` that it decided on, the ``found`` memories, and the decision (``action``,
    ``memories``, ``decisions``). Of a read: the ``document``, as far as it was read, and the ``answers``.
    """

    id: str
    kind: TraceKind
    at: datetime
    model: str
    profile: str
    calls: tuple[TracedCall, ...]
    tools: tuple[Json, ...] = ()
    usage: Usage = Usage()
    turns: tuple[Source, ...] = ()
    found: tuple[HeldMemory, ...] = ()
    action: Action | None = None
    memories: tuple[str, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    strategy: str = ""
    document: str = ""
    answers: tuple[TracedAnswer, ...] = ()


class TraceSwitch(Wire):
    """``PUT /v1/admin/trace-settings``. Without ``tenant``: the caller's own. Off deletes what was kept."""

    enabled: bool
    tenant: str | None = Field(default=None, pattern=f"^{TENANT_PATTERN}$")


class TraceSettings(Wire):
    """Whether a tenant's traces are kept, and how many are."""

    object: Literal["trace_settings"] = "trace_settings"
    tenant: str
    enabled: bool
    kept: int
    keep_s: int
