"""What a loop reports while it works: one frozen step after every reply that changed something.

A step holds everything that a progress bar, an event stream or a trainer's recorder needs.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from memloop.loops.results import Decision
from memloop.ports import Recalled
from memloop.wire.memory import Usage
from memloop.wire.memory_events import DecisionRecord

Verdict: TypeAlias = Literal["ask", "sufficient", "repeated", "unusable"]


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """One chunk was read.

    ``pass_number`` is 1 for the root read, ``chunk`` its number in the document, ``done`` how many chunks of the pass
    are read. ``kept`` says that the reply was empty and the old memory stands; ``truncated`` that the reply hit its
    token limit; ``skipped`` that the model left the memory as it is, and ``enough`` that it suffices. ``segment``
    counts from 0 when segments are read side by side, ``asked`` is the number of the read's question.
    """

    pass_number: int
    chunk: int
    tokens: int
    done: int
    chunks_total: int
    question: str
    memory: str
    kept: bool
    truncated: bool
    usage: Usage
    skipped: bool = False
    enough: bool = False
    segment: int | None = None
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """Memories of segments were read into one, ``left`` wait (``kept``, ``truncated`` as in ``ChunkRead``)."""

    pass_number: int
    memory: str
    left: int
    kept: bool
    truncated: bool
    usage: Usage
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """The judge gave its verdict: ``query`` is set when, and only when, the verdict is ``ask``."""

    verdict: Verdict
    query: str | None
    usage: Usage
    asked: int = 0


@dataclass(frozen=True, slots=True)
class RereadStarted:
    """``chunks_total`` chunks are about to be read again for ``question``, as pass ``pass_number`` (2 is the first)."""

    pass_number: int
    question: str
    chunks_total: int
    asked: int = 0


@dataclass(frozen=True, slots=True)
class SubAnswered:
    """The sub-question has its answer; it is empty after an empty reply."""

    question: str
    answer: str
    usage: Usage
    truncated: bool = False
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Integrated:
    """The sub-answer went into the root memory (``kept``: the reply was empty and the old memory stands)."""

    memory: str
    kept: bool
    truncated: bool
    usage: Usage
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """The final answer; ``boxed`` is False when the model gave no box and its whole text was taken."""

    answer: str
    boxed: bool
    usage: Usage
    truncated: bool = False
    asked: int = 0


@dataclass(frozen=True, slots=True)
class MemorySearched:
    """The memory writer searched, and this was found."""

    query: str
    found: tuple[Recalled, ...]
    record: DecisionRecord
    usage: Usage


@dataclass(frozen=True, slots=True)
class OutputRejected:
    """The memory writer's reply was no valid call; it is asked once more."""

    problem: str
    raw: str
    record: DecisionRecord
    usage: Usage


@dataclass(frozen=True, slots=True)
class Decided:
    """The memory writer is done."""

    decision: Decision
    record: DecisionRecord
    usage: Usage


ReadStep: TypeAlias = ChunkRead | Merged | Judged | RereadStarted | SubAnswered | Integrated | Answered
DecideStep: TypeAlias = MemorySearched | OutputRejected | Decided
