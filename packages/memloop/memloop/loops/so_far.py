"""The memory of a read in progress: for its record, and for the answer when its budget is spent."""

from memloop.loops.notes import distinct
from memloop.loops.results import NO_DEGRADATIONS
from memloop.loops.steps import Answered, ChunkRead, Integrated, Judged, Merged, ReadStep, SubAnswered
from memloop.profiles import Profile
from memloop.wire.long_read import ReadDegradations


def degradations_of(step: ReadStep) -> ReadDegradations:
    """Return the degradations of the step's call. Their sum over all steps is that of the result."""
    match step:
        case ChunkRead() | Merged() | Integrated():
            return ReadDegradations(kept=int(step.kept), truncated=int(step.truncated))
        case SubAnswered() | Answered():
            return ReadDegradations(truncated=int(step.truncated))
        case Judged():
            return ReadDegradations(unusable=int(step.verdict == "unusable"))
        case _:
            return NO_DEGRADATIONS


class MemorySoFar:
    """One question's root memory after each step; of unmerged segments, as many as fit one prompt."""

    def __init__(self, profile: Profile) -> None:
        self._empty = profile.empty_memory
        self._most = 1 + profile.budget.memories_in_a_chunk
        self._parts: dict[int | None, str] = {}
        self._whole: str | None = None

    def note(self, step: ReadStep) -> None:
        """Take in a step; those of rereads change nothing until they are integrated."""
        match step:
            case ChunkRead(pass_number=1):
                self._parts[step.segment] = step.memory
            case Merged(pass_number=1, left=0) | Integrated():
                self._whole = step.memory
            case Merged(pass_number=1):
                self._parts = {-1: step.memory, **self._parts}
            case _:
                pass

    @property
    def anything(self) -> bool:
        """Whether it holds anything at all."""
        return self.text != self._empty

    @property
    def text(self) -> str:
        """The memory; the profile's empty memory before anything was read."""
        if self._whole is not None:
            return self._whole
        return "\n".join(distinct(self._parts.values(), self._empty)[: self._most]) or self._empty
