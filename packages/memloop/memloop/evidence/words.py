"""The words of a statement or a sentence, as matching compares them."""

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic import BaseModel

from memloop.evidence.function_words import LIGHT, WORDS
from memloop.evidence.language import Tables, filled
from memloop.evidence.numerals import may_be
from memloop.evidence.units import quantity
from memloop.evidence.values import Value, values_in

_WORD = re.compile(
    r"(?<!\w)[A-Z]{1,3}[+-](?![\w(])|\([A-Za-z]\)|[^\W\d_]{1,3}\d+(?:\.\d+)+\w*|\d+\w*|s'élève à|asciende a|ammonta a"
    r"|uppgår till|ではなく|ではな(?=[いか])|ではありません|じゃな(?=[いか])|でした|である|であった|だった|です|とする"
    r"|となる|だ(?= ?(?:[。、,]|$))|아니(?=[다라며었])|(?:(?<=[가-힣])|(?<=[\d\w%)] ))(?:의|은|는|이|가|이다|입니다"
    r"|이며|이고|이었다|였다)(?![가-힣])|(?<=[가-힣])(?:[하되]며|[하되]고|한다|된다|합니다|됩니다|했다|됐다|했으며"
    r"|됐으며|했습니다|됐습니다|으며|다|습니다)(?![가-힣])|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?:[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|['’](?=\w))*"
)
_SIGNS = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_SIGN = re.compile(_SIGNS)
_BROKEN = re.compile(r"\u00ad\s*|(?<=[^\W\d_])[-‐]\s*\n\s*(?=[^\W\d_A-Z])")
"""Soft hyphens, and a word that is cut at a line's end."""
_PART_OF_UNIT = re.compile(r"\b((?:[Dd]rei)?[Vv]iertel)(?=stunde|liter|kilo|jahr|pfund)")
_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_POWER = re.compile(r"(?<=\d)(?=[⁻⁰¹²³⁴-⁹])")
_BESIDE_SIGN = re.compile(rf"(?<={_SIGNS})(?=(?!{_SIGNS})\S)|(?<=\S)(?<!{_SIGNS})(?={_SIGNS})")


class _Rewriting(BaseModel):
    """What is found is written otherwise, in a text that ``has`` one of these signs."""

    find: str
    write: str
    has: str = ""


class _Writing(Tables):
    """Ways to write values, and how they are compared."""

    pieces: dict[str, str]
    beside_digits: tuple[_Rewriting, ...]
    in_signs: tuple[_Rewriting, ...]


_WRITING = _Writing.read("rewriting")
_BESIDE_DIGITS, _IN_SIGNS = (
    [(each.has, re.compile(filled(each.find, _WRITING.pieces)), each.write) for each in ways]
    for ways in (_WRITING.beside_digits, _WRITING.in_signs)
)
_DIGIT = re.compile(r"\d")
_HOURS = re.compile(r"\d ?h|[^\W\d] (?:heure|hora)", re.IGNORECASE)
_OPENING = re.compile(r"[,、(]")
_BEFORE_SIGNS = "\u3000"
_ROMAN = re.compile(r"(?=[IVXLC]{2})(?P<c>C{0,3})(?P<x>XC|XL|L?X{0,3})(?P<i>IX|IV|V?I{0,3})(?:e|è|º|ª|th|er)?")
_ROMANS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_LONGEST_LABEL = 24
_POSSESSIVE = re.compile(r"'(?:s|y?[aeıiuü]|n?[ıiuü]n|[dt][ae]n?|[dt][ıiuü]r)?$")
"""``Ann's``, and the endings of Turkish names: ``Kaya'nın``."""
_ELIDED = re.compile(r"^(?:d|l|un|dell|all|dall|nell|sull)'(?=\w)", re.IGNORECASE)
_ENDINGS = ("ing", "ed", "es", "s", "e")
_LEAST_STEM = 3
_LEAST_PROBE = 4


@dataclass(frozen=True, slots=True)
class Word:
    """``norm`` is the word in lower case, ``stem`` without its ending; ``anchor`` says that it must match exactly.

    A value has its one form in both, and the ``unit`` that stands with it; it may be ``spelled`` as a word. ``maybe``
    is the number that a word may be, or nothing. ``asked``: a question says the word, and no statement. ``opens``: a
    comma or a bracket stands before it. ``is_joined``: a Korean word that stands in one with the word before it.
    ``quantity``: a value that has other units, as all that are equal are.
    """

    norm: str
    stem: str
    anchor: bool
    unit: str = ""
    is_value: bool = False
    spelled: bool = False
    maybe: str = ""
    asked: bool = False
    opens: bool = False
    is_joined: bool = False
    quantity: str = ""

    @property
    def probe(self) -> str:
        """How it begins in a folded text, in all its forms; empty for a value, which may be written in another way."""
        return "" if self.is_value or self.maybe else folded(self.stem)[: max(_LEAST_PROBE, len(self.stem) - 2)]

    @property
    def as_number(self) -> "Word":
        """The number that it may be."""
        return replace(self, norm=self.maybe, stem=self.maybe, anchor=True, is_value=True, spelled=True)

    @property
    def kind(self) -> str:
        """What a value counts or that it is a time of day; empty where neither is known."""
        return self.quantity.rpartition(" ")[2] or self.unit or (":" if self.is_value and ":" in self.norm else "")

    @property
    def is_sign(self) -> bool:
        """Whether it is one sign of Chinese, Japanese or Korean."""
        return _SIGN.fullmatch(self.norm) is not None

    @property
    def content(self) -> bool:
        """Whether it says something by itself."""
        return self.norm not in WORDS.function_words and not self.negates and not self.is_light

    @property
    def is_light(self) -> bool:
        """Whether a text may lack it: *the*, *is*, in languages besides English."""
        return self.norm in LIGHT and not self.anchor

    @property
    def negates(self) -> bool:
        """Whether it turns a statement round."""
        return self.norm in WORDS.negations or self.norm.endswith(("n't", "n’t"))


def folded(text: str) -> str:
    """Return the text in the form in which ``norm`` and ``stem`` of words are searched."""
    return plain(text).casefold()


def plain(text: str) -> str:
    """Return the text with words whole, widths and ligatures resolved, and fractions and powers beside their number."""
    apart = _POWER.sub("^", _FRACTION.sub(" ", _BROKEN.sub("", text))).replace("ºC", "°C").replace("ºF", "°F")
    level = (
        unicodedata.normalize("NFKC", apart).replace("⁄", "/").replace("〇", "零").replace("−", "-").replace("’", "'")
    )
    for _, pattern, written in _BESIDE_DIGITS if _DIGIT.search(level) else ():
        level = pattern.sub(written, level)
    level = _PART_OF_UNIT.sub(r"\1 ", level) if "iertel" in level else level
    if max(level, default="") <= _BEFORE_SIGNS:
        return level
    signs = frozenset(level)
    for needed, way, other in _IN_SIGNS:
        if not signs.isdisjoint(needed):
            level = way.sub(other, level)
    return _BESIDE_SIGN.sub(" ", level)


def words_of(text: str, *, commas: bool = False) -> tuple[Word, ...]:
    """Return the words in order. Values, names (capitals that are no function words) and CJK signs are anchors.

    ``commas`` says that decimals have commas.
    """
    text = plain(text)
    words: list[Word] = []
    start = end = 0
    for value in (*values_in(text, commas=commas), Value(len(text), len(text), "", "")):
        for found in _WORD.finditer(text, start, value.start):
            word = _word(found[0], is_first=not words)
            word = replace(word, norm=found[0], stem=found[0], anchor=True) if _is_label(found) else word
            opens = found.start() > end + 1 and _OPENING.search(text, end, found.start()) is not None
            is_joined = found.start() == end and word.norm >= "가"
            words.append(replace(word, opens=opens, is_joined=is_joined) if opens or is_joined else word)
            end = found.end()
        if value.norm:
            opens = _OPENING.search(text, end, value.start) is not None
            # 2 h 30 is a time of day or lasts as long
            unit = value.unit or ("h" if ":" in value.norm and _HOURS.search(text, value.start, value.end) else "")
            words.append(
                Word(
                    value.norm,
                    value.norm,
                    anchor=True,
                    unit=value.unit,
                    is_value=True,
                    spelled=value.spelled,
                    opens=opens,
                    quantity=quantity(value.norm, unit),
                )
            )
        start = end = value.end
    return tuple(words)


def _is_label(found: re.Match[str]) -> bool:
    """Return whether ``A`` or ``I`` is no article and no pronoun: ``vitamin A``, ``Charles I``, ``part I``."""
    if found[0] not in ("A", "I"):
        return False
    if _SIGN.match(found.string, found.end() + found.string.startswith(" ", found.end())):
        return True  # A店
    before = found.string[: found.start()].rstrip()
    last = before[-_LONGEST_LABEL:].split()[-1:]
    return bool(last) and (
        last[0].casefold() in WORDS.labelled
        or (found[0] == "A" and last[0].islower())
        or (last[0].isalpha() and last[0].istitle() and last[0] != before)
    )


@lru_cache(maxsize=16_384)
def _word(raw: str, *, is_first: bool) -> Word:
    bare = _ELIDED.sub("", _POSSESSIVE.sub("", raw))
    norm = bare.casefold()
    is_capital = bare[:1].isupper()
    is_little = norm in WORDS.function_words or (norm in LIGHT and (is_first or not is_capital))
    named = not is_little and (is_capital or any(sign.isdigit() for sign in bare) or _SIGN.fullmatch(bare) is not None)
    endings = (each for each in _ENDINGS if norm.endswith(each) and len(norm) - len(each) >= _LEAST_STEM)
    stem = norm.removesuffix(next(endings, ""))
    return Word(norm, stem, anchor=named, maybe=_roman(bare) or may_be(norm) or ("1" if norm in ("a", "an") else ""))


def _roman(word: str) -> str:
    if not (found := _ROMAN.fullmatch(word)):
        return ""
    numbers = [_ROMANS[sign] for sign in "".join(found.groups())]
    # A smaller one before a greater one is taken away
    return str(
        sum(-number if number < after else number for number, after in zip(numbers, [*numbers[1:], 0], strict=True))
    )
