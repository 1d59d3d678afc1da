"""BM25 as sparse vectors: term weights on our side, inverse document frequency in Qdrant (its IDF modifier).

Tokens are runs of letters and digits, folded and stemmed (Snowball), without English function words; scripts that
write no spaces (Han, kana, Thai, …) are cut into pairs of characters. Source of the weights: Robertson and
Zaragoza, "The Probabilistic Relevance Framework", 2009, equation 3.15.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from threading import Lock
from typing import cast

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

from memory_store.vectors.port import NO_WORDS, SparseVector

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_FUNCTION_WORDS = """
a an and are as at be been but by did do does for from had has have he her his how i if in into is it its me my of on or
our she so that the their them then there these they this to was we were what when where which who why will with would
you your
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_MAX_TOKEN_CHARS = 64
_MAX_TOKENS = 8192


class Bm25:
    """Encodes documents and queries. ``average_tokens`` is the expected length of a document after stop words.

    ``language`` is a Snowball algorithm's name; tokens of other languages pass through its rules.
    """

    def __init__(
        self, *, language: str = "english", k1: float = 1.2, b: float = 0.75, average_tokens: float = 24.0
    ) -> None:
        self._stem = _stemmer(language)
        self._k1 = k1
        self._b = b
        self._average_tokens = average_tokens

    def document(self, text: str) -> SparseVector:
        """Saturated, length-normalised term frequencies."""
        terms = Counter(self.terms(text))
        length = sum(terms.values())
        floor = self._k1 * (1 - self._b + self._b * length / self._average_tokens)
        return _vector({term: count * (self._k1 + 1) / (count + floor) for term, count in terms.items()})

    def query(self, text: str) -> SparseVector:
        """Weight 1 for every distinct term."""
        return _vector(dict.fromkeys(self.terms(text), 1.0))

    def terms(self, text: str) -> list[str]:
        """Return the stems in order; at most the first 8,192 of them."""
        folded = unicodedata.normalize("NFKC", text).casefold()
        stems: list[str] = []
        for token in _tokens(folded):
            if token not in _STOP_WORDS:
                stems.append(self._stem(token[:_MAX_TOKEN_CHARS]))
            if len(stems) == _MAX_TOKENS:
                break
        return stems


def _stemmer(language: str) -> Callable[[str], str]:
    """Returns a cached Snowball stemmer for any thread; the algorithm keeps its word in itself, so it takes a lock."""
    algorithm = cast("Callable[[str], str]", snowballstemmer.stemmer(language).stemWord)  # pyright: ignore[reportUnknownMemberType]
    one_at_a_time = Lock()

    def stem(word: str) -> str:
        with one_at_a_time:
            return algorithm(word)

    return lru_cache(maxsize=65_536)(stem)


def _tokens(folded: str) -> Iterator[str]:
    for match in _WORD.finditer(folded):
        word = match.group()
        if not _UNSPACED.search(word):
            yield word
            continue
        yield from _UNSPACED.sub(" ", word).split()
        for run in _UNSPACED.findall(word):
            yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))


def _vector(weights: dict[str, float]) -> SparseVector:
    """Terms become CRC-32 indices; terms that collide add up."""
    by_index: dict[int, float] = {}
    for term, weight in weights.items():
        index = zlib.crc32(term.encode())
        by_index[index] = by_index.get(index, 0.0) + weight
    indices = tuple(sorted(by_index))
    return SparseVector(indices, tuple(by_index[index] for index in indices)) if indices else NO_WORDS
