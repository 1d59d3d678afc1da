"""What the reading loops return."""

from dataclasses import dataclass

from memloop.wire.long_read import ReadDegradations, SubQuestion
from memloop.wire.memory import Usage

NO_DEGRADATIONS = ReadDegradations()


@dataclass(frozen=True, slots=True)
class PassResult:
    """The memory after one pass over all chunks."""

    memory: str
    usage: Usage
    degradations: ReadDegradations = NO_DEGRADATIONS


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as parsed and as written; see ``memloop.loops.parsing.Answer``."""

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
