"""Texts to the two vectors that are stored and searched: the embedding model's, and term weights.

The latter are BM25 as sparse vectors, with the inverse document frequency in Qdrant (its IDF modifier).

Tokens are runs of letters and digits, folded and stemmed (Snowball), without English function words; scripts that
write no spaces (Han, kana, Thai, …) are cut into pairs of characters. A word of another language has a second term, by
the stemmer of its language, where that differs; a Korean word has its pairs of characters, a Han character stands for
itself too. So terms of earlier versions are still among those of a question. Source of the weights: Robertson and
Zaragoza, "The Probabilistic Relevance Framework", 2009, equation 3.15.

A text has the language whose stemmer its words need. Function words and letters decide for Latin script, the script
itself for others. English is the answer wherever it is possible: a text is of another language only if it has two marks
of it, and more than twice as many as of English.
"""

import asyncio
import logging
import re
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from threading import Lock
from typing import Final, cast

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

from memloop.wire.errors import DependencyError
from memory_store.embedding.languages import FUNCTION_WORDS, LETTERS, TELLING
from memory_store.embedding.port import Embedder, Vector
from memory_store.vectors.port import NO_WORDS, SparseVector

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_HANGUL = re.compile("[\uac00-\ud7a3]+")
_FUNCTION_WORDS = """
a an and are as at be been but by did do does for from had has have he her his how i if in into is it its me my of on or
our she so that the their them then there these they this to was we were what when where which who why will with would
you your
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_MAX_TOKEN_CHARS = 64
_MAX_TOKENS = 8192
_KEPT_WORDS = 65_536
_KEPT_TERMS = 16_384
_K1, _B = 1.2, 0.75
_AVERAGE_TOKENS = 24.0
"""The expected length of a document after stop words."""


class Bm25:
    """Encodes documents and queries. ``language`` is a Snowball algorithm's name: of the terms that every text has."""

    def __init__(self, *, language: str = "english") -> None:
        self._language = language
        self._stem = stemmer(language)
        self._terms = lru_cache(maxsize=_KEPT_TERMS)(self._terms_of)

    def document(self, text: str) -> SparseVector:
        """Saturated, length-normalised term frequencies. The length is the number of words."""
        words = self._words(text)
        terms = Counter(term for word in words for term in word)
        floor = _K1 * (1 - _B + _B * len(words) / _AVERAGE_TOKENS)
        return _vector({term: count * (_K1 + 1) / (count + floor) for term, count in terms.items()})

    def query(self, text: str) -> SparseVector:
        """Weight 1 for every distinct term."""
        return _vector(dict.fromkeys(self.terms(text), 1.0))

    def terms(self, text: str) -> list[str]:
        """Return the stems in order; those of the first 8,192 words at most."""
        return [term for word in self._words(text) for term in word]

    def _words(self, text: str) -> list[tuple[str, ...]]:
        folded = unicodedata.normalize("NFKC", text).casefold()
        words = _WORD.findall(folded)
        language = language_of(words)
        left_out = FUNCTION_WORDS.get(language or "", frozenset[str]()) | _STOP_WORDS
        kept = (token for token in _tokens(words) if token not in left_out)
        return [self._terms(token[:_MAX_TOKEN_CHARS], language) for token in islice(kept, _MAX_TOKENS)]

    def _terms_of(self, token: str, language: str | None) -> tuple[str, ...]:
        """Return the term that every text has first, then those of the token's language."""
        own = language_of_script(token) or language
        more = [stemmer(own)(token)] if own is not None and own != self._language else []
        return tuple(dict.fromkeys((self._stem(token), *more, *_parts(token))))


@cache
def stemmer(language: str) -> Callable[[str], str]:
    """Returns a cached Snowball stemmer for any thread; the algorithm keeps its word in itself, so it takes a lock."""
    algorithm = cast("Callable[[str], str]", snowballstemmer.stemmer(language).stemWord)  # pyright: ignore[reportUnknownMemberType]
    one_at_a_time = Lock()

    def stem(word: str) -> str:
        if word.isascii() and word.isdecimal():  # has no ending, and is seldom met again
            return word
        with one_at_a_time:
            return algorithm(word)

    return lru_cache(maxsize=_KEPT_WORDS)(stem)


def _tokens(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word.isascii() or not _UNSPACED.search(word):
            yield word
            continue
        yield from _UNSPACED.sub(" ", word).split()
        for run in _UNSPACED.findall(word):
            yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))


def _parts(token: str) -> Iterator[str]:
    """Yields the Han characters of a pair, and the pairs of characters of a Korean word."""
    if token.isascii():
        return
    yield from _HAN.findall(token)
    for run in _HANGUL.findall(token):
        yield from (run[at : at + 2] for at in range(len(run) - 1))


def _vector(weights: dict[str, float]) -> SparseVector:
    """Terms become CRC-32 indices; terms that collide add up."""
    by_index: dict[int, float] = {}
    for term, weight in weights.items():
        index = zlib.crc32(term.encode())
        by_index[index] = by_index.get(index, 0.0) + weight
    indices = tuple(sorted(by_index))
    return SparseVector(indices, tuple(by_index[index] for index in indices)) if indices else NO_WORDS


_QUICK_CHARS = 1024
"""Shorter texts are stemmed on the event loop, in under 5 ms; longer ones in a thread."""
_log = logging.getLogger(__name__)
_NEGATIONS = frozenset(("no", "not", "never", "none", "without", "cannot", "t"))


_LOOKED_AT: Final = 256
_LEAST: Final = 2
_ENGLISH: Final = (_STOP_WORDS | {"him", "not", "us"}) - {"as", "do", "me"}  # three that other languages have


def _by_mark(marks: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the languages of each word or letter."""
    languages: defaultdict[str, list[str]] = defaultdict(list)
    for language, each in marks.items():
        for mark in each:
            languages[mark].append(language)
    return dict(languages)


_BY_WORD: Final = _by_mark(TELLING)
_BY_LETTER: Final = _by_mark(LETTERS)
_MARKED: Final = re.compile(f"[{''.join(sorted(_BY_LETTER))}]")

_SCRIPTS: Final = (
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), "greek"),
    (re.compile("[\u0400-\u04ff]"), "russian"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
    (re.compile("[\u0600-\u06ff]"), "arabic"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
)


def language_of(words: Iterable[str]) -> str | None:
    """Return the Snowball name of the language in which folded words in Latin letters are; None for English and others.

    Looks at the first words only.
    """
    marks: Counter[str] = Counter()
    english = 0
    for word in islice(words, _LOOKED_AT):
        english += word in _ENGLISH
        if word in _BY_WORD:
            marks.update(_BY_WORD[word])
        if not word.isascii() and (letter := _MARKED.search(word)) is not None:
            marks.update(_BY_LETTER[letter.group()])
    if not marks:
        return None
    language, most = max(marks.items(), key=lambda one: (one[1], one[0]))
    return language if most >= _LEAST and most > 2 * english else None


def language_of_script(word: str) -> str | None:
    """Return the language whose stemmer fits the script of a word; None for Latin letters and scripts without one."""
    if word.isascii():
        return None
    return next((language for script, language in _SCRIPTS if script.search(word)), None)


class TextEncoding:
    """A dense embedder and BM25 side by side."""

    def __init__(self, embedder: Embedder, bm25: Bm25) -> None:
        self._embedder = embedder
        self._bm25 = bm25
        self._stemming = asyncio.Lock()
        self._fails = False

    def use(self, embedder: Embedder) -> None:
        """Embeds with another model from now on."""
        self._embedder = embedder

    async def documents(self, texts: Sequence[str]) -> list[tuple[Vector, SparseVector]]:
        """Returns the dense and sparse vector of each text, embedded in one call."""
        dense = await self._embedder.embed(texts)
        if sum(map(len, texts)) <= _QUICK_CHARS:
            return list(zip(dense, map(self._bm25.document, texts), strict=True))
        async with self._stemming:
            sparse = await asyncio.to_thread(lambda: [self._bm25.document(text) for text in texts])
        return list(zip(dense, sparse, strict=True))

    async def query(self, text: str) -> tuple[Vector | None, SparseVector]:
        """Returns a query's dense and sparse vector; None for the dense one if the embedding model fails."""
        dense: Vector | None = None
        try:
            dense = await self._embedder.embed_query(text)
        except DependencyError as error:
            if not self._fails:  # the first of several failures is logged, and their end
                _log.warning("searches go by words alone: %s", error.message)
            self._fails = True
        else:
            if self._fails:
                _log.info("searches go by meaning again")
            self._fails = False
        if len(text) <= _QUICK_CHARS:
            return dense, self._bm25.query(text)
        async with self._stemming:
            return dense, await asyncio.to_thread(self._bm25.query, text)

    async def dense(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Returns the dense vectors of texts that are compared. Raises ``DependencyError``."""
        return await self._embedder.embed(texts)

    def terms(self, text: str) -> list[str]:
        """Returns a text's stemmed words in order, without function words."""
        return list(self._bm25.terms(text))

    def marked_words(self, text: str) -> frozenset[str]:
        """Returns a text's numbers and negations: where they differ, similar sentences say different things."""
        terms = self._bm25.terms(text)
        return frozenset(term for term in terms if term in _NEGATIONS or any(char.isdigit() for char in term))
