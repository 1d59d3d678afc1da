"""The language of a text, as far as its words need another stemmer than English ones.

Function words and letters decide for Latin script, the script itself for others. English is the answer wherever it is
possible: a text is of another language only if it has two marks of it, and more than twice as many as of English.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from memory_store.embedding.function_words import LETTERS, TELLING

_LOOKED_AT: Final = 256
_LEAST: Final = 2
_ENGLISH_WORDS: Final = """
    a an and are at be been but by did does for from had has have he her him his how i if in into is it its my not of
    on or our she so that the their them then there these they this to us was we were what when where which who why
    will with would you your
"""
_ENGLISH: Final = frozenset(_ENGLISH_WORDS.split())


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
