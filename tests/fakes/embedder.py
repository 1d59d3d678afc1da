"""A deterministic encoder without a model: texts that share words point in similar directions."""

import hashlib
import math
import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


class HashingEncoder:
    """Each word of a text adds a pseudo-random direction of its own; the sum has length 1."""

    def __init__(self, *, dimension: int = 64) -> None:
        self.dimension = dimension
        self.batches: list[int] = []

    def encode(self, texts: Sequence[str]) -> Sequence[tuple[float, ...]]:
        """One unit vector per text."""
        self.batches.append(len(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> tuple[float, ...]:
        total = [0.0] * self.dimension
        for word in _WORD.findall(text.casefold()) or [text]:
            for at, step in enumerate(_direction(word, self.dimension)):
                total[at] += step
        length = math.hypot(*total) or 1.0
        return tuple(value / length for value in total)


def _direction(word: str, dimension: int) -> list[float]:
    data = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(dimension)
    return [byte / 127.5 - 1.0 for byte in data]
