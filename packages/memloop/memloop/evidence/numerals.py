"""Numbers that are written as words: ``twenty-five``, ``fünfundzwanzig``, ``half a dozen``, ``two thirds``.

Some words are a number in one language and another word in another: ``due``, ``once``, ``elf``. Alone they stay words,
and :func:`may_be` returns the number that they may be.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

from memloop.evidence.number_words import (
    ENDINGS,
    FACTORS,
    FROM_TWO,
    GERMAN_ORDINALS,
    HALF,
    HUNDREDS,
    ONE,
    ONLY_WITH_MORE,
    ORDINALS,
    OTHER_WORDS,
    PARTS,
    TENS,
    VEINTI,
)
from memloop.evidence.units import MOST, SCALES

_ARTICLES: Final = frozenset(("a", "an", *ONE.split()))
_AND: Final = frozenset(("and", "y", "e", "et", "und", "с", "и"))
_JOINS: Final = frozenset((" ", "-", "\u00a0"))
_STARTS: Final = frozenset(["mil", "mille", "cent", "ciento", "cento", "hundert", "tausend", "тысяча"])
_TEN, _TWENTY, _HUNDRED, _THOUSAND = 10, 20, 100, 1000
_VIGESIMAL: Final = (60, 80)
"""Tens on which French counts to nineteen."""


def _numbered(lines: Sequence[str], *, start: int, times: int = 1) -> dict[str, int]:
    named = ((word, number) for line in lines for number, word in enumerate(line.split(), start))
    return {word: number * times for word, number in named if word != "-"}


_GERMAN: Final = {"ein": 1, **_numbered(FROM_TWO[1:2], start=2)}
_GERMAN_TENS: Final = _numbered(TENS[1:2], start=2, times=10)
_ITALIAN: Final = {"un": 1, "uno": 1, "tré": 3, **_numbered(FROM_TWO[4:5], start=2)}
_ITALIAN_TENS: Final = {
    word[:length]: number
    for word, number in _numbered(TENS[4:5], start=2, times=10).items()
    for length in (len(word), -1)
}
_ENGLISH: Final = frozenset((*FROM_TWO[0].split(), *TENS[0].split()))
_LAST: Final = _numbered(ORDINALS, start=1) | {
    stem + ending: number for stem, number in _numbered([GERMAN_ORDINALS], start=1).items() for ending in ENDINGS
}
_CARDINALS: Final = (
    _numbered(FROM_TWO, start=2)
    | _numbered(TENS, start=2, times=10)
    | _numbered(HUNDREDS, start=1, times=100)
    | _numbered([VEINTI], start=21)
)
_PART_OF: Final = {word: part for part, words in PARTS.items() for word in words.split()}
_FACTOR_OF: Final = {word: factor for factor, words in FACTORS.items() for word in words.split()} | {
    f"{word}mal": f"×{number}" for word, number in _GERMAN.items() if number > 1
}
_SCALE_OF: Final = SCALES | dict.fromkeys(("cent", "cents", "cento", "ciento", "hundert"), _HUNDRED)
_WITH_HALF: Final = {"anderthalb": 1, "полтора": 1, "полторы": 1} | {
    f"{word}einhalb": number for word, number in _GERMAN.items()
}


def _compound(units: dict[str, int], tens: dict[str, int], *, german: bool) -> re.Pattern[str]:
    unit, ten = "|".join(sorted(units, key=len, reverse=True)), "|".join(sorted(tens, key=len, reverse=True))
    rest = f"(?:(?P<unit>{unit})und)?(?P<ten>{ten})" if german else f"(?P<ten>{ten})(?P<unit>{unit})?"
    thousand, hundred = ("tausend", "hundert") if german else ("(?:mila|mille)", "cento?")
    return re.compile(
        rf"(?:(?P<thousands>{unit})?(?P<thousand>{thousand}))?(?:und)?(?:(?P<hundreds>{unit})?(?P<hundred>{hundred}))?"
        rf"(?:und)?(?:{rest}|(?P<one>{unit}))?"
    )


_COMPOUNDS: Final = (
    (_compound(_GERMAN, _GERMAN_TENS, german=True), _GERMAN | _GERMAN_TENS),
    (_compound(_ITALIAN, _ITALIAN_TENS, german=False), _ITALIAN | _ITALIAN_TENS),
)


@lru_cache(maxsize=4096)
def _number(word: str) -> int:
    """Return the number that one word is; 0 where it is none."""
    if number := _CARDINALS.get(word) or _LAST.get(word):
        return number
    for pattern, numbers in _COMPOUNDS:
        found = pattern.fullmatch(word)
        if found is not None and sum(map(bool, found.groups())) > 1:
            number = sum(numbers.get(found[name] or "", 0) for name in ("ten", "unit", "one"))
            number += _HUNDRED * numbers.get(found["hundreds"] or "", 1) if found["hundred"] else 0
            return number + (_THOUSAND * numbers.get(found["thousands"] or "", 1) if found["thousand"] else 0)
    return 0


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number in words, or a factor such as ``×2``, from ``start`` to ``end`` of the text.

    An ordinal counts nothing. An unsure one is another word too, and a number if it counts something: ``due metri``.
    """

    start: int
    end: int
    norm: str
    is_ordinal: bool = False
    is_sure: bool = True


def may_be(word: str) -> str:
    """Return the number that a word may be which is another word as well; empty for other words."""
    if word in ONE.split():
        return "1"
    number = (_number(word) or _SCALE_OF.get(word)) if word in OTHER_WORDS else 0
    return str(number) if number else ""


def written(number: Fraction) -> str:
    """Return a number with a point before its decimals, or as a fraction where decimals have no end."""
    whole, rest = divmod(number, 1)
    if not rest:
        return str(whole)
    return (
        format(float(number), ".12g") if 10**9 % rest.denominator == 0 else f"{number.numerator}/{number.denominator}"
    )


_WORD: Final = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def numerals_in(text: str) -> Iterator[Numeral]:
    """Yield the numbers that are written as words, in order."""
    found = [*_WORD.finditer(text)]
    words = [each[0].casefold() for each in found]
    gaps = [text[one.end() : other.start()] for one, other in pairwise(found)]
    at = 0
    while at < len(words):
        norm, end = _Reader(words, gaps).read(at) if words[at] in _FIRST or _number(words[at]) else ("", at)
        if norm:
            yield Numeral(found[at].start(), found[end - 1].end(), norm, is_ordinal=words[end - 1] in _ORDINALS_ONLY)
        elif (maybe := may_be(words[at])) and words[at] not in _ORDINALS_ONLY:
            yield Numeral(found[at].start(), found[at].end(), maybe, is_sure=False)
        at = max(end, at + 1)


_ORDINALS_ONLY: Final = _LAST.keys() - _CARDINALS.keys()
_FIRST: Final = _ARTICLES | HALF | _STARTS | _FACTOR_OF.keys() | _WITH_HALF.keys()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Words and what stands between them; a number is read from a place on."""

    words: Sequence[str]
    gaps: Sequence[str]

    def read(self, start: int) -> tuple[str, int]:
        """Return the number that begins at ``start``, and the place behind it; an empty one where none does."""
        first = self.words[start]
        if first in _FACTOR_OF:
            return _FACTOR_OF[first], start + 1
        at = start
        if first in _ARTICLES and self._follows(start, HALF) and (half := self._half(at + 1))[1] > at + 2:
            return half  # ein halbes Dutzend, and not um halb acht
        has_article = first in _ARTICLES and self._follows(start, _SCALE_OF, _PART_OF)
        if has_article:
            at += 1
        if self.words[at] in HALF:
            return self._half(at)
        if has_article and self.words[at] in _PART_OF:
            return written(Fraction(1, _PART_OF[self.words[at]])), at + 1
        total, current, at, is_ordinal = self._count(at, has_article=has_article)
        number = Fraction(total + current)
        if first in _WITH_HALF:
            number, at = Fraction(2 * _WITH_HALF[first] + 1, 2), start + 1
        elif at > start and not is_ordinal and number < _TWENTY and self._joined(at) and self.words[at] in _PART_OF:
            number, at = number / _PART_OF[self.words[at]], at + 1
        elif at > start and (end := self._and_half(at)):
            number, at = number + Fraction(1, 2), end
        is_number = number and (at > start + 1 or first not in OTHER_WORDS)
        return (written(number), at) if is_number else ("", at)

    def _count(self, start: int, *, has_article: bool) -> tuple[int, int, int, bool]:
        """Return thousands, the rest, the place behind them, and whether the number is an ordinal."""
        total = current = 0
        at = start
        while at < len(self.words) and (at == start or self._joined(at)):
            word, dashed = self.words[at], at > start and self.gaps[at - 1] == "-"
            has_and = word in _AND and at > start and self._follows(at, _CARDINALS, _LAST, ONE.split())
            word = self.words[at + has_and]
            number = _number(word) or (word in ONE.split() and at > start)
            scale = _SCALE_OF.get(word, 1)
            if word.startswith("vingt") and current % _HUNDRED == 4 and dashed:
                current += 76
            elif number and _goes_on(current, number, dashed=dashed):
                current += number
            elif (
                at > start
                and not has_and
                and {word, self.words[at - 1]} <= _ENGLISH
                and _TEN < current <= _TWENTY
                and number >= _TEN
            ):
                current = current * _HUNDRED + number  # nineteen eighty-four
            elif scale > 1 and max(total, current) < MOST and (current or total or has_article or word in _STARTS):
                if scale < _THOUSAND:
                    current = max(current, 1) * scale
                else:
                    # mil millones
                    total, current = (total * scale if total and not current else total + max(current, 1) * scale), 0
            else:
                break
            at += 1 + has_and
            if word in _ORDINALS_ONLY:
                return total, current, at, True
        return total, current, at, False

    def _half(self, at: int) -> tuple[str, int]:
        """``half a dozen``, ``half``."""
        times = at + 1 + (self._follows(at, _ARTICLES))
        if times < len(self.words) and self._joined(times) and (scale := _SCALE_OF.get(self.words[times])):
            return written(Fraction(scale, 2)), times + 1
        return ("", at + 1) if self.words[at] in ONLY_WITH_MORE else ("0.5", at + 1)

    def _and_half(self, at: int) -> int:
        """Return the place behind ``and a half``; 0 where it does not follow."""
        if at >= len(self.words) or not self._joined(at) or self.words[at] not in _AND:
            return 0
        at += self._follows(at, _ARTICLES)
        return at + 2 if self._follows(at, HALF) else 0

    def _joined(self, at: int) -> bool:
        return 0 < at < len(self.words) and self.gaps[at - 1] in _JOINS

    def _follows(self, at: int, *among: Container[str]) -> bool:
        return self._joined(at + 1) and any(self.words[at + 1] in each for each in among)


def _goes_on(number: int, more: int, *, dashed: bool) -> bool:
    """Return whether a number goes on with more: 20 with 5, 200 with 20, 60 with 12 in French, 10 with 7 dashed."""
    part = number % _HUNDRED
    if not part:
        return more < _HUNDRED or not number
    if part >= _TWENTY and not part % _TEN and more < _TEN:
        return True
    return (part in _VIGESIMAL and _TEN <= more < _TWENTY) or (part == _TEN and dashed and 6 < more < _TEN)
