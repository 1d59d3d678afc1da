"""The memory of one question in one pass: one text, or several heads of which the stalest is rewritten.

Source of the heads: MHM-LRU. A rewrite that changes nothing is no update, so a head that holds a fact is left alone
until every other head has changed since.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


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
