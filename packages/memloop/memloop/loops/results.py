"""What the reading loops return."""

from dataclasses import dataclass

from memloop.wire.long_read import SubQuestion
from memloop.wire.memory import Usage


@dataclass(frozen=True, slots=True)
class Degradations:
    """Counts of replies that fell short without failing, for metrics and for the record of a read.

    ``kept`` empty replies left the old memory standing, ``truncated`` replies hit their token limit, and
    ``unusable`` verdicts of the judge ended the rereading.
    """

    kept: int = 0
    truncated: int = 0
    unusable: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Each kind with how often it happened."""
        return {"kept": self.kept, "truncated": self.truncated, "unusable": self.unusable}

    def __add__(self, other: "Degradations") -> "Degradations":
        return Degradations(self.kept + other.kept, self.truncated + other.truncated, self.unusable + other.unusable)


NO_DEGRADATIONS = Degradations()


@dataclass(frozen=True, slots=True)
class PassResult:
    """The memory after one pass over all chunks."""

    memory: str
    usage: Usage
    degradations: Degradations = NO_DEGRADATIONS


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as parsed and as written; see ``memloop.loops.parsing.Answer``."""

    answer: str
    boxed: bool
    raw: str
    usage: Usage
    degradations: Degradations = NO_DEGRADATIONS

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
    degradations: Degradations = NO_DEGRADATIONS

    @property
    def rereads(self) -> int:
        """Passes after the root read."""
        return len(self.subquestions)
