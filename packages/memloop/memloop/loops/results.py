"""What the reading loops return."""

from dataclasses import dataclass

from memloop.wire.long_read import SubQuestion
from memloop.wire.memory import Usage


@dataclass(frozen=True, slots=True)
class Slips:
    """How often the model fell short without failing: for metrics, and for a reader who wants to know how it went.

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

    def __add__(self, other: "Slips") -> "Slips":
        return Slips(self.kept + other.kept, self.truncated + other.truncated, self.unusable + other.unusable)


NO_SLIPS = Slips()


@dataclass(frozen=True, slots=True)
class PassResult:
    """The memory after one pass over all chunks."""

    memory: str
    usage: Usage
    slips: Slips = NO_SLIPS


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as parsed and as written; see ``memloop.loops.parsing.Answer``."""

    answer: str
    boxed: bool
    raw: str
    usage: Usage
    slips: Slips = NO_SLIPS

    @property
    def truncated(self) -> bool:
        """Whether it hit its token limit."""
        return self.slips.truncated > 0


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A finished read. ``answer`` is empty when the model said nothing; ``boxed`` as in ``Answered``."""

    answer: str
    boxed: bool
    raw_answer: str
    memory: str
    usage: Usage
    subquestions: tuple[SubQuestion, ...] = ()
    slips: Slips = NO_SLIPS

    @property
    def rereads(self) -> int:
        """Passes after the root read."""
        return len(self.subquestions)
