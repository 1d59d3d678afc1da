"""The vectors of texts that were embedded lately: repeated queries and facts cost no model."""

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from prometheus_client import Counter

Vector: TypeAlias = tuple[float, ...]


class VectorCache:
    """The last ``entries`` texts, as 32-bit numbers, which is what models give; texts themselves are not kept."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._vectors: OrderedDict[bytes, array[float]] = OrderedDict()

    def get(self, text: str) -> Vector | None:
        """Return the text's vector, if it is here; it is then the last to go."""
        key = _key(text)
        found = self._vectors.get(key)
        if found is None:
            return None
        self._vectors.move_to_end(key)
        return tuple(found)

    def put(self, text: str, vector: Vector) -> None:
        """Keep it; the one that was asked for longest ago goes when there are too many."""
        self._vectors[_key(text)] = array("f", vector)
        if len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)


class KnownVectors:
    """The vectors of texts, from the cache where it has them. ``looked_up`` counts by ``hit`` and ``miss``."""

    def __init__(self, cache: VectorCache, *, looked_up: Counter) -> None:
        self._cache = cache
        self._looked_up = looked_up

    async def of(
        self,
        texts: Sequence[str],
        make: Callable[[Sequence[str]], Awaitable[Sequence[Vector]]],
    ) -> list[Vector]:
        """Return the vectors of the texts; ``make`` makes those that are missing."""
        known = {text: vector for text in texts if (vector := self._cache.get(text)) is not None}
        unknown = [text for text in texts if text not in known]
        self._looked_up.labels("hit").inc(len(texts) - len(unknown))
        self._looked_up.labels("miss").inc(len(unknown))
        for text, vector in zip(unknown, await make(unknown) if unknown else (), strict=True):
            known[text] = vector
            self._cache.put(text, vector)
        return [known[text] for text in texts]


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
