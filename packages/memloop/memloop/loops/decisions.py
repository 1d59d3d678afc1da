"""What the memory writer may decide. The loop only decides; its host applies the decision."""

from dataclasses import dataclass
from typing import TypeAlias

from memloop.wire.memory import DecisionRecord, MemoryDraft, Usage


@dataclass(frozen=True, slots=True)
class AddMemories:
    """Store these, at least one."""

    drafts: tuple[MemoryDraft, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class BufferTurns:
    """Keep the turns and present them again with the next ones."""

    reason: str


@dataclass(frozen=True, slots=True)
class IgnoreTurns:
    """Nothing is worth keeping."""

    reason: str


@dataclass(frozen=True, slots=True)
class InvalidOutput:
    """The model gave no valid call, and a repair turn did not help. ``raw`` is its last reply, for debugging."""

    problem: str
    raw: str


Decision: TypeAlias = AddMemories | BufferTurns | IgnoreTurns | InvalidOutput


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """The decision, one record per turn of the model (searches and rejected replies included), and the cost."""

    decision: Decision
    records: tuple[DecisionRecord, ...]
    usage: Usage
