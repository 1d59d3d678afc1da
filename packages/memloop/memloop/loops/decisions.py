"""What the memory writer may decide. The loop only decides; its host applies the decision."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from memloop.wire.memory import MemoryDraft, Usage
from memloop.wire.memory_events import Action, DecisionRecord


@dataclass(frozen=True, slots=True)
class AddMemories:
    """Store these, at least one."""

    action: ClassVar[Action] = "add"
    drafts: tuple[MemoryDraft, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class BufferTurns:
    """Keep the turns and present them again with the next ones."""

    action: ClassVar[Action] = "buffer"
    reason: str


@dataclass(frozen=True, slots=True)
class IgnoreTurns:
    """Nothing is worth keeping."""

    action: ClassVar[Action] = "ignore"
    reason: str


@dataclass(frozen=True, slots=True)
class InvalidOutput:
    """The model gave no valid call, and a repair turn did not help.

    ``raw`` is its last reply, for debugging; ``cut`` means that this reply hit its token limit.
    """

    action: ClassVar[Action] = "invalid"
    problem: str
    raw: str
    cut: bool = False


Decision: TypeAlias = AddMemories | BufferTurns | IgnoreTurns | InvalidOutput


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """The decision, one record per turn of the model (searches and rejected replies included), and the cost.

    ``dropped`` entries of the model's list of memories were invalid and are not in the decision.
    """

    decision: Decision
    records: tuple[DecisionRecord, ...]
    usage: Usage
    dropped: int = 0

    @property
    def drafts(self) -> tuple[MemoryDraft, ...]:
        """What the decision stores."""
        return self.decision.drafts if isinstance(self.decision, AddMemories) else ()
