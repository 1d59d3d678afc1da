"""The vectors of texts that were embedded lately: repeated queries and facts cost no model."""

import hashlib
from array import array
from collections import OrderedDict


class VectorCache:
    """The last ``entries`` texts, as 32-bit numbers, which is what models give; texts themselves are not kept."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._vectors: OrderedDict[bytes, array[float]] = OrderedDict()

    def get(self, text: str) -> tuple[float, ...] | None:
        """Return the text's vector, if it is here; it is then the last to go."""
        key = _key(text)
        found = self._vectors.get(key)
        if found is None:
            return None
        self._vectors.move_to_end(key)
        return tuple(found)

    def put(self, text: str, vector: tuple[float, ...]) -> None:
        """Keep it; the one that was asked for longest ago goes when there are too many."""
        self._vectors[_key(text)] = array("f", vector)
        if len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
