"""Searches memories in this process as the memory writer's loop does, for training and evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from memloop.ports import Recalled

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HeldMemories:
    """A MemoryIndex. The best memory shares the rarest words with the query; among equals the newer comes first.

    Like the store, it always finds something unless it is empty.
    """

    memories: Sequence[Recalled]

    async def search(self, query: str, *, top_k: int) -> Sequence[Recalled]:
        """See ``MemoryIndex``."""
        words = [_words(memory.text) for memory in self.memories]
        held_by = Counter(word for each in words for word in each)
        asked = _words(query)

        def rank(number: int) -> tuple[float, float, str]:
            shared = asked & words[number]
            score = sum(log(1 + len(words) / held_by[word]) for word in sorted(shared))
            return -score, -self.memories[number].valid_from.timestamp(), self.memories[number].id

        return [self.memories[number] for number in sorted(range(len(words)), key=rank)[:top_k]]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
