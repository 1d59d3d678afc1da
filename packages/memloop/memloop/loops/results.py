"""What the loops return: the decisions of the memory writer, which its host applies, and the results of reads.

Every decision has the ``drafts`` that it stores; only an ``AddMemories`` has any.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from memloop.wire.long_read import ReadDegradations, SubQuestion
from memloop.wire.memory import MemoryDraft, Usage
from memloop.wire.memory_events import Action, DecisionRecord


@dataclass(frozen=True, slots=True)
class AddMemories:
    """Store these, at least one."""

    action: ClassVar[Action] = "add"
    drafts: tuple[MemoryDraft, ...]
    summary: str

    @property
    def reason(self) -> str:
        return self.summary


@dataclass(frozen=True, slots=True)
class BufferTurns:
    """Keep the turns and present them again with the next ones."""

    action: ClassVar[Action] = "buffer"
    drafts: ClassVar[tuple[MemoryDraft, ...]] = ()
    reason: str


@dataclass(frozen=True, slots=True)
class IgnoreTurns:
    """Nothing is worth keeping."""

    action: ClassVar[Action] = "ignore"
    drafts: ClassVar[tuple[MemoryDraft, ...]] = ()
    reason: str


@dataclass(frozen=True, slots=True)
class InvalidOutput:
    """The model gave no valid call, and a repair turn did not help.

    ``raw`` is its last reply, for debugging; ``cut`` means that this reply hit its token limit.
    """

    action: ClassVar[Action] = "invalid"
    drafts: ClassVar[tuple[MemoryDraft, ...]] = ()
    problem: str
    raw: str
    cut: bool = False

    @property
    def reason(self) -> str:
        return self.problem


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


NO_DEGRADATIONS = ReadDegradations()


@dataclass(frozen=True, slots=True)
class PassResult:
    """The memory after one pass over all chunks."""

    memory: str
    usage: Usage
    degradations: ReadDegradations = NO_DEGRADATIONS


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as parsed and as written; see ``memloop.loops.parsing.reading.Answer``."""

    answer: str
    boxed: bool
    raw: str
    usage: Usage
    degradations: ReadDegradations = NO_DEGRADATIONS

    @property
    def truncated(self) -> bool:
        """Whether it hit its token limit."""
        return self.degradations.truncated > 0


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A finished read. ``answer`` is empty after an empty reply; ``boxed`` as in ``Answered``."""

    answer: str
    boxed: bool
    raw_answer: str
    memory: str
    usage: Usage
    subquestions: tuple[SubQuestion, ...] = ()
    degradations: ReadDegradations = NO_DEGRADATIONS

    @property
    def rereads(self) -> int:
        """Passes after the root read."""
        return len(self.subquestions)
