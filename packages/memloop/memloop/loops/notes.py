"""The memory of one question in one pass: one text, or several heads of which the stalest is rewritten.

Source of the heads: MHM-LRU. A rewrite that changes nothing is no update, so a head that holds a fact is left alone
until every other head has changed since.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from memloop.loops.results import NO_DEGRADATIONS
from memloop.loops.steps import Answered, ChunkRead, Integrated, Judged, Merged, ReadStep, SubAnswered
from memloop.profiles import Profile
from memloop.wire.long_read import ReadDegradations


@dataclass(frozen=True, slots=True)
class Notes:
    """``heads`` of memory, and their numbers with the least recently updated first."""

    heads: tuple[str, ...]
    stale_first: tuple[int, ...]

    @classmethod
    def blank(cls, empty: str, heads: int) -> Self:
        """So many empty heads."""
        return cls((empty,) * heads, tuple(range(heads)))

    @property
    def due(self) -> str:
        """The head that the next chunk may rewrite."""
        return self.heads[self.stale_first[0]]

    def rewritten(self, text: str) -> "Notes":
        """Return the notes with ``text`` in the place of the head that was due."""
        if text == self.due:
            return self
        number, *later = self.stale_first
        heads = (*self.heads[:number], text, *self.heads[number + 1 :])
        return Notes(heads, (*later, number))

    def text(self, empty: str) -> str:
        """Return all heads that hold something, as one memory, the freshest last."""
        return "\n".join(distinct((self.heads[number] for number in self.stale_first), empty)) or empty


def distinct(memories: Iterable[str], empty: str) -> list[str]:
    """Return the distinct memories that are not empty, in order."""
    return [memory for memory in dict.fromkeys(memories) if memory != empty]


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
        return self.text != self._empty

    @property
    def text(self) -> str:
        """The memory; the profile's empty memory before anything was read."""
        if self._whole is not None:
            return self._whole
        return "\n".join(distinct(self._parts.values(), self._empty)[: self._most]) or self._empty
