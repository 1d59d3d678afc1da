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
from typing import Final, Literal

from memloop.evidence.language import Tables, Words, WordSet
from memloop.evidence.units import MOST, SCALES, any_of, bare


class _Numbers(Tables):
    """Rows count from the number that names their table."""

    one: Words
    starts: WordSet
    other_words: WordSet
    half: WordSet
    only_with_more: Words
    zero: WordSet
    point: WordSet
    from_two: dict[str, Words]
    tens: dict[str, Words]
    hundreds: dict[str, Words]
    veinti: dict[str, Words]
    ordinals: dict[str, Words]
    ordinal_tens: dict[str, Words]
    stems_of_ordinals: dict[str, dict[Literal["stems", "endings"], Words]]
    parts: dict[int, Words]
    whole_parts: dict[str, Words]
    factors: dict[str, Words]


NUMBERS: Final = _Numbers.read("numbers")
_ARTICLES: Final = frozenset(("a", "an", *NUMBERS.one))
_AND: Final = frozenset(("and", "y", "e", "et", "und", "с", "и", "en", "och", "og", "i"))
_JOINS: Final = frozenset((" ", "-", "\u00a0"))
_TEN, _TWENTY, _HUNDRED, _THOUSAND = 10, 20, 100, 1000
_LEAST_COMPOUND, _MOST_COMPOUND = 6, 64
_VIGESIMAL: Final = (60, 80)
"""Tens on which French counts to nineteen."""


def _numbered(*rows: Sequence[str], start: int, times: int = 1) -> dict[str, int]:
    named = ((word, number) for row in rows for number, word in enumerate(row, start))
    # Russian is written with and without its dots
    return {form: number * times for word, number in named if word != "-" for form in (word, word.replace("ё", "е"))}


_FROM_TWO, _TENS = NUMBERS.from_two, NUMBERS.tens
_ENGLISH: Final = frozenset((*_FROM_TWO["english"], *_TENS["english"]))
_BIG: Final = "mil mille bin tusind tusen duizend tausend hundert honderd hundrede hundre hundra"
NOT_ENGLISH: Final = (
    frozenset(word for table in (_FROM_TWO, _TENS, NUMBERS.hundreds) for row in table.values() for word in row)
    | NUMBERS.starts
) - _ENGLISH - NUMBERS.other_words - {"six", "-"} | frozenset(_BIG.split())
"""Numbers of languages other than English, without those that are other words as well."""
_IN_DANISH: Final = "og er på af av blev ble der det den ikke har til fra et en halv hundrede hundre tusind tusen timer"
_DANISH: Final = frozenset(_IN_DANISH.split())
_NOT_DANISH: Final = frozenset(
    ["the", "of", "is", "was", "were", "a", "and", "it", "he", "she", "they", "we", "i", "you"]
)
"""Words of sentences in which *to* is two, in Danish and Norwegian, and in which it is not."""
_FUSED: Final = [
    f"{bare(ten)}{unit}".replace("oo", "o")
    for ten in ("décimo", *NUMBERS.ordinal_tens["spanish"][1:])
    for unit in ("-", *NUMBERS.ordinals["spanish"][:9])
]
"""Spanish ordinals from ten on as one word: ``decimocuarto``."""
_ITALIAN: Final = (
    *_FROM_TWO["italian"][9:],
    *(
        f"{ten[:-1] if unit[:1] in ('u', 'o') else ten}{unit}"
        for ten in _TENS["italian"]
        for unit in ("", "uno", *_FROM_TWO["italian"][:8])
    ),
)
_ESIMO: Final = [f"{word if word[-3:] in ('tre', 'sei') else word[:-1]}esimo" for word in _ITALIAN]
_ORDINALS: Final = (
    _numbered(*NUMBERS.ordinal_tens.values(), start=1, times=10)
    | _numbered(*NUMBERS.ordinals.values(), start=1)
    | _numbered(_FUSED, start=10)
    | _numbered(_ESIMO, start=11)
)
_LAST: Final = (
    _ORDINALS
    # decimotercera, undicesima
    | {word[:-1] + "a": number for word, number in _ORDINALS.items() if word.endswith("o")}
    | {
        form + ending: number
        for row in NUMBERS.stems_of_ordinals.values()
        for form, number in _numbered(row["stems"], start=1).items()
        for ending in row["endings"]
    }
)
_CARDINALS: Final = (
    _numbered(*_FROM_TWO.values(), start=2)
    | _numbered(*_TENS.values(), start=2, times=10)
    | _numbered(*NUMBERS.hundreds.values(), start=1, times=100)
    | _numbered(*NUMBERS.veinti.values(), start=21)
)
_PART_OF: Final = {word: part for part, words in NUMBERS.parts.items() for word in words}
_HUNDREDS: Final = "cent cents cento ciento hundert honderd hundra hundrede hundre yüz"
_SCALE_OF: Final = SCALES | dict.fromkeys(_HUNDREDS.split(), _HUNDRED)


@dataclass(frozen=True, slots=True)
class _Compounds:
    """How a language writes a number as one word; ``joins`` may stand between its parts."""

    small: re.Pattern[str]
    numbers: dict[str, int]
    scales: tuple[tuple[str, int], ...]
    joins: tuple[str, ...]

    @classmethod
    def of(cls, language: str, one: str, scales: tuple[str, ...], *joins: str, unit_join: str = "") -> "_Compounds":
        units = dict.fromkeys(one.split(), 1) | _numbered(_FROM_TWO[language], start=2)
        tens = _numbered(_TENS[language], start=2, times=10)
        if "og" in joins:
            units["to"], tens["tres"] = 2, tens.get("tres", 60)
        if scales[0] == "mila":  # ventuno, ventotto
            units["tré"], tens = 3, tens | {ten[:-1]: number for ten, number in tens.items()}
        unit, ten = any_of(units), any_of(tens)
        small = rf"(?:({unit})(?:{unit_join}))?({ten})|({unit})" if unit_join else rf"({ten})({unit})?|({unit})"
        sizes = zip(scales, (_THOUSAND,) * (len(scales) - 1) + (_HUNDRED,), strict=True)
        return cls(re.compile(small), units | tens, tuple(sizes), ("", *joins))

    def number_of(self, word: str) -> int:
        """Return the number that a word is; 0 where it is none."""
        for name, scale in self.scales:
            head, found, tail = word.partition(name)
            if found and (times := self.number_of(head) if head else 1):
                rests = (self.number_of(tail.removeprefix(join)) for join in self.joins if tail.startswith(join))
                rest = next((rest for rest in rests if rest), 0) if tail else 0
                return times * scale + rest if rest or tail in self.joins else 0
        found = self.small.fullmatch(word)
        return sum(self.numbers[part] for part in found.groups() if part) if found else 0


_COMPOUNDS: Final = (
    _Compounds.of("german", "ein eins", ("tausend", "hundert"), "und", unit_join="und"),
    _Compounds.of("italian", "un uno", ("mila", "mille", "cent"), "o"),
    _Compounds.of("dutch", "een één", ("duizend", "honderd"), "en", unit_join="en|ën"),
    _Compounds.of("swedish", "en ett", ("tusen", "hundra")),
    _Compounds.of("danish", "en et", ("tusind", "hundrede"), "og", unit_join="og"),
    _Compounds.of("norwegian", "en ett", ("tusen", "hundre"), "og"),
)
_FACTOR_OF: Final = {word: factor for factor, words in NUMBERS.factors.items() for word in words} | {
    f"{word}mal": f"×{number}" for word, number in _numbered(_FROM_TWO["german"], start=2).items()
}
_WHOLE_PART_OF: Final = {word: Fraction(part) for part, words in NUMBERS.whole_parts.items() for word in words} | {
    word + half: Fraction(2 * number + 1, 2)
    for language, halves in (("german", ("einhalb",)), ("dutch", ("enhalf", "ënhalf", "enhalve", "ënhalve")))
    for word, number in _numbered(_FROM_TWO[language], start=2).items()
    for half in halves
}
_ENDINGS_OF_ORDINALS: Final = ("sten", "ster", "stes", "stem", "ste", "ten", "ter", "tes", "te", "nde", "de")


@lru_cache(maxsize=4096)
def _number(word: str) -> int:
    """Return the number that one word is; 0 where it is none."""
    if number := _CARDINALS.get(word) or _LAST.get(word):
        return number
    if word in _SCALE_OF or not _LEAST_COMPOUND <= len(word) <= _MOST_COMPOUND:
        return 0
    forms = (word, *(word.removesuffix(ending) for ending in _ENDINGS_OF_ORDINALS if word.endswith(ending)))
    return next((number for form in forms for each in _COMPOUNDS if (number := each.number_of(form))), 0)


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
    if word in NUMBERS.one:
        return "1"
    number = (_number(word) or _SCALE_OF.get(word)) if word in NUMBERS.other_words else 0
    return str(number) if number else ""


def written(number: Fraction) -> str:
    """Return a number with a point before its decimals, or as a fraction where decimals have no end."""
    whole, rest = divmod(number, 1)
    if not rest:
        return str(whole)
    return (
        format(float(number), ".12g") if 10**9 % rest.denominator == 0 else f"{number.numerator}/{number.denominator}"
    )


_WORD: Final = re.compile(
    r"(?:(?<!\w)[oO]n (?=(?:bir|iki|üç|dört|beş|altı|yedi|sekiz|dokuz)))?"  # on iki
    r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)


def numerals_in(text: str) -> Iterator[Numeral]:
    """Yield the numbers that are written as words, in order."""
    found = [*_WORD.finditer(text)]
    words = [each[0].casefold().replace(" ", "") for each in found]
    gaps = [text[one.end() : other.start()] for one, other in pairwise(found)]
    if "to" in words and not _DANISH.isdisjoint(words) and _NOT_DANISH.isdisjoint(words):
        words = ["two" if word == "to" else word for word in words]
    at = 0
    while at < len(words):
        norm, end = _Reader(words, gaps).read(at) if words[at] in _FIRST or _number(words[at]) else ("", at)
        if norm:
            yield Numeral(
                found[at].start(),
                found[end - 1].end(),
                norm,
                is_ordinal=norm.isdigit() and words[end - 1] in _ORDINALS_ONLY,
            )
        elif words[at] not in _ORDINALS_ONLY and (maybe := may_be(words[at]) or _HALF_OF.get(words[at])):
            yield Numeral(found[at].start(), found[at].end(), maybe, is_sure=False)
        at = max(end, at + 1)


_HALF_OF: Final[dict[str, str]] = dict.fromkeys(NUMBERS.only_with_more, "0.5")
"""``meio quilo``."""
_ORDINALS_ONLY: Final = _LAST.keys() - _CARDINALS.keys()
_FIRST: Final = frozenset(
    (*_ARTICLES, *NUMBERS.half, *NUMBERS.starts, *_FACTOR_OF, *_WHOLE_PART_OF, *NUMBERS.zero, "en", "et", "ett")
)


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
        if first in _ARTICLES and self._follows(start, NUMBERS.half) and (half := self._half(at + 1))[1] > at + 2:
            return half  # ein halbes Dutzend, and not um halb acht
        has_article = first in _ARTICLES and self._follows(start, _SCALE_OF, _PART_OF)
        has_article = has_article and (first != "a" or self.words[start + 1][-1] != "a")  # a décima
        if has_article:
            at += 1
        if self.words[at] in NUMBERS.half:
            return self._half(at)
        if has_article and self.words[at] in _PART_OF:
            return written(Fraction(1, _PART_OF[self.words[at]])), at + 1
        total, current, at, is_ordinal = self._count(at, has_article=has_article)
        number = Fraction(total + current)
        if first in _WHOLE_PART_OF:
            number, at = self._scaled(_WHOLE_PART_OF[first], start + 1)  # anderthalb Millionen
        elif at > start and not is_ordinal and number < _TWENTY and self._joined(at) and self.words[at] in _PART_OF:
            number, at = number / _PART_OF[self.words[at]], at + 1
        elif end := self._and_half(max(at, start + 1)):
            half = _SCALE_OF.get(self.words[at - 1], 1) if at > start else 1
            number += Fraction(half if half > _HUNDRED else 1, 2) + (at == start)
            number, at = (number, end) if half > 1 else self._scaled(number, end)  # dwa i pół miliona
        decimals, end = self._decimals(at if at > start else at + (first in NUMBERS.zero or first in _ARTICLES))
        if decimals:
            number, at = (number or Fraction(first in _ARTICLES)) + Fraction(f"0.{decimals}"), end
        is_number = number and (at > start + 1 or first not in NUMBERS.other_words)
        return (written(number), at) if is_number else ("", at)

    def _count(self, start: int, *, has_article: bool) -> tuple[int, int, int, bool]:
        """Return thousands, the rest, the place behind them, and whether the number is an ordinal."""
        total = current = 0
        at = start
        while at < len(self.words) and (at == start or self._joined(at)):
            word, dashed = self.words[at], at > start and self.gaps[at - 1] == "-"
            goes_on = at > start and self.words[at - 1] in _ORDINALS_ONLY
            if goes_on and word not in _ORDINALS_ONLY:
                break
            more = self.words[at + 1] if word in _AND and at > start and self._joined(at + 1) else ""
            has_and = _number(more) > 0 or more in NUMBERS.one
            word = self.words[at + has_and]
            number = _number(word) or (word in NUMBERS.one and at > start)
            scale = _SCALE_OF.get(word, 1)
            if word.startswith("vingt") and current % _HUNDRED == 4 and dashed:
                current += 76
            elif number and _goes_on(current, number, dashed=dashed or goes_on):
                current += number
            elif (
                at > start
                and not has_and
                and {word, self.words[at - 1]} <= _ENGLISH
                and _TEN < current <= _TWENTY
                and number >= _TEN
            ):
                current = current * _HUNDRED + number  # nineteen eighty-four
            elif (
                scale > 1 and max(total, current) < MOST and (current or total or has_article or word in NUMBERS.starts)
            ):
                if scale < _THOUSAND:
                    current = max(current, 1) * scale
                else:
                    # mil millones
                    total, current = (total * scale if total and not current else total + max(current, 1) * scale), 0
            else:
                break
            at += 1 + has_and
        return total, current, at, at > start and self.words[at - 1] in _ORDINALS_ONLY

    def _half(self, at: int) -> tuple[str, int]:
        """``half a dozen``, ``half``."""
        half, end = self._scaled(Fraction(1, 2), at + 1 + self._follows(at, _ARTICLES))
        if half > 1:
            return written(half), end
        return ("", at + 1) if self.words[at] in _HALF_OF else ("0.5", at + 1)

    def _decimals(self, at: int) -> tuple[str, int]:
        """Return the digits behind ``point``, and the place behind them; none where it does not follow."""
        digits, at = "", at + 1
        if not self._joined(at) or self.words[at - 1] not in NUMBERS.point or not self._joined(at - 1):
            return "", at
        while self._joined(at) and (
            number := _number(self.words[at]) or self.words[at] in (*NUMBERS.zero, *NUMBERS.one)
        ):
            digits, at = f"{digits}{int(number)}", at + 1
        return digits, at

    def _scaled(self, number: Fraction, at: int) -> tuple[Fraction, int]:
        """Return the number times a million where that stands at ``at``, and the place behind it."""
        scale = _SCALE_OF.get(self.words[at]) if self._joined(at) else None
        return (number * scale, at + 1) if scale else (number, at)

    def _and_half(self, at: int) -> int:
        """Return the place behind ``and a half``; 0 where it does not follow."""
        if self._joined(at) and self.words[at] == "buçuk":
            return at + 1
        if not self._joined(at) or self.words[at] not in (*_AND, "a"):
            return 0
        at += self._follows(at, _ARTICLES, ("en", "ett"))
        return at + 2 if self._follows(at, NUMBERS.half) else 0

    def _joined(self, at: int) -> bool:
        return 0 < at < len(self.words) and self.gaps[at - 1] in _JOINS

    def _follows(self, at: int, *among: Container[str]) -> bool:
        return self._joined(at + 1) and any(self.words[at + 1] in each for each in among)


def _goes_on(number: int, more: int, *, dashed: bool) -> bool:
    """Return whether a number goes on with more: 20 with 5, 200 with 20, 60 with 12 in French, 10 with 7 dashed."""
    part = number % _HUNDRED
    if not part:
        return more < (_HUNDRED if number % _THOUSAND else _THOUSAND) or not number
    if part >= _TWENTY and not part % _TEN and more < _TEN:
        return True
    return (part in _VIGESIMAL and _TEN <= more < _TWENTY) or (part == _TEN and dashed and more < _TEN)
