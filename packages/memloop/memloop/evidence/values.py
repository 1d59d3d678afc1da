"""Values in a text: numbers, times of day, dates and versions, in one form however they are written.

``1,500`` is a thousand and a half where decimals have a point, and one and a half where they have a comma. A text shows
which it is by its other numbers (:func:`has_decimal_commas`); one that shows nothing has points.

A value is a sign, a currency, a number (in digits or words), what multiplies it, and what it counts; a moment; or a
telephone number.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from memloop.evidence import hanzi
from memloop.evidence.function_words import WORDS
from memloop.evidence.language import Pattern, Tables
from memloop.evidence.moments import Moment, moments_in
from memloop.evidence.numerals import NOT_ENGLISH, Numeral, numerals_in, written
from memloop.evidence.units import (
    CURRENCIES,
    OF_MONEY,
    OF_TIME,
    in_base,
    rated,
    same_unit,
    scale_behind,
    unit_behind,
    unit_named,
)


class _Around(Tables):
    """Words around values."""

    minus: Pattern
    below: Pattern
    named: Pattern
    and_half: Pattern
    one_unit: Pattern
    and_rest: Pattern
    point_decimal: Pattern
    dialled: Pattern
    at: Pattern


_AROUND: Final = _Around.read("values")
_MARK: Final = r"[.,'’٬\u00a0\u202f ]"
_CODES: Final = "|".join(CURRENCIES)
_MONEY: Final = (
    rf"(?P<money>(?:(?:US|AU|CA|NZ|HK|[RAC])?[$€£¥₹₽₩₺₴₪฿]|(?<!\d)(?<!\d\s)[%‰](?=\d)|[yY]üzde\b|"
    rf"(?:{_CODES})\b\.?)\s?)?"
)
_SIGN: Final = r"(?P<sign>(?<![\w)\]])(?:[-−+±~≈<>≤≥]\s?|–))?"
_NUMBER: Final = re.compile(
    rf"""(?<![\w^])(?<!\d[.,:/])
    {_MONEY}{_SIGN}(?P<inner>[$€£¥₹₽₩]\s?)?
    (?P<digits>\d{{1,3}}(?:{_MARK}\d{{3}})+(?![\d])(?:[.,]\d+)?|\d+(?:[.,:/-]\d+)*|(?<!\d)\.\d+)
    (?:\ (?P<part>[1-9]/[2-9])(?![\d/.,]))?
    (?P<power>\^[-−]?\d+)?
    (?P<grade>[-+](?=[,.;)]|$|\s(?!(?:und|oder|bis|and|or|to|e|ed|o|y|et|ou|à|bis|en|of|tot|och|eller|og|i|lub|do)\s|\d)[^\W\d_]))?
    (?P<release>-(?i:rc|alpha|beta|dev|pre|snapshot)[.-]?\d*)?
    (?P<ordinal>(?:st|nd|rd|th|er|re|e|è|ème|ième|\.?[oaº]|:[ea]|°(?=\s(?:piano|secolo|posto|anno|andar|lugar|século|puesto|siglo|piso|edi[cz]i|edição|anivers|compleanno|capit|artic))|\.er|-?(?:й|я|е|го|ый|ая|ое)|-(?:м|му|ом|ым|ых|ю|ую))(?!\w))?
    (?P<suffix>[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)?""",
    re.VERBOSE,
)
_OF_DEGREES: Final = ("grad", "°", "°c", "°f", "%")
"""What *min* stands before in Dutch where it is no minimum."""
_PLACE: Final = re.compile(r"\d+\.\d*0")
_OF_A: Final = re.compile(r"\s(?:of )?an?(?=\s)")
"""``half a teaspoon``."""
_REST: Final = {
    ("eur", "cents"): 100, ("usd", "cents"): 100, ("cny", "jiao"): 10, ("year", "month"): 12, ("pound", "oz"): 16
}  # fmt: skip
"""How many of the second unit one of the first is where they have no common one."""
_HUNDREDTHS: Final = {"eur": "cents", "usd": "cents", "m": "cm"}
"""What a number without a unit counts behind another one: ``7 euros 50``, ``un metro e ottantanove``."""
_HEIGHT: Final = re.compile(r"\d{1,2}\.\d\d")
_GOES_ON: Final = re.compile(r"\s?(?:[,.;)]|$|(?P<word>[^\W\d_]+))")
_BEFORE: Final = 18
"""Characters of the longest minus."""
_PHONE: Final = re.compile(
    r"(?<![\w.,+])(?:\+\d{1,3}[ ./-]?(?:\(?\d{1,5}\)?[ ./-]{0,2}){1,6}\d{2,}"
    r"|(?!\d\d[-./ ]\d\d?[-./ ]\d{4}(?!\d))0\d{1,4}(?:[ /.()-]\d{1,8}){1,6}|(?:1[-. ])?\d{3}([-. ])\d{3}\1\d{4}"
    r"|\(\d{2,5}\)\s?\d{2,9}(?:[ /-]\d{2,5}){0,4})(?!\w|[.,]\d)"
)
_FEW_DIGITS, _MANY_DIGITS = 8, 15
_GROUPED: Final = re.compile(rf"\d{{1,3}}(?:{_MARK}\d{{3}})+")
_COMMA_DECIMAL: Final = re.compile(r"(?<![\d.,])\d+,(?:\d{1,2}|\d{4,})(?![\d.,]*\d)|\d\.\d{3},\d|\d,[-–—](?!\d)")
_WITH_POINTS, _WITH_COMMAS = WORDS.with_points, WORDS.with_commas | NOT_ENGLISH
_LITTLE: Final = _WITH_POINTS | _WITH_COMMAS | {"a", "par", "each", "groß", "hoch", "lang", "tall", "high", "long"}
_ACCENTED: Final = re.compile("[à-öø-ɏа-я]")
_FRACTION: Final = re.compile(r"[1-9]/(?:[2-9]|10)")
_DECIMAL: Final = re.compile(r"[-+±~≈<>≤≥]?\d+(?:\.\d+)?")
_LETTER: Final = re.compile(r"\s?(?P<scale>[kKmMbBT])(?:(?!\w)|(?=[€$£¥]))(?P<money>\s?[€$£¥])?")
"""``3.2m`` of money, ``3 M€``."""
_PLAIN: Final = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_RANGE: Final = re.compile(r"\d+(?:[.,]\d+)?-\d+(?:[.,]\d+)?")


@dataclass(frozen=True, slots=True)
class Value:
    """``norm`` stands at ``start`` to ``end`` of the text; ``unit`` is what it counts, empty where nothing says so.

    ``spelled``: it is written as words.
    """

    start: int
    end: int
    norm: str
    unit: str = ""
    spelled: bool = False


def has_decimal_commas(text: str) -> bool:
    """Return whether decimals have a comma: by the text's own numbers, else by its language."""
    shown = len(_COMMA_DECIMAL.findall(text)) - len(_AROUND.point_decimal.findall(text))
    if shown:
        return shown > 0
    words = text.casefold().split()
    shown = sum(word in _WITH_COMMAS for word in words) - sum(word in _WITH_POINTS for word in words)
    return shown > 0 or (not shown and _ACCENTED.search(text) is not None)


def values_in(text: str, *, commas: bool) -> Iterator[Value]:
    """Yield the values of a plain text in order; ``commas`` says that its decimals have commas."""
    parts = (
        Value(each.start(), end if unit else each.end(), norm, of or unit, spelled=True)
        for each in hanzi.PART.finditer(text)
        for norm, of in [hanzi.part_of(each)]
        for unit, end in [("", 0) if of else unit_behind(text, each.end())]
    )
    phones = (each for each in _PHONE.finditer(text) if _FEW_DIGITS <= sum(map(str.isdigit, each[0])) <= _MANY_DIGITS)
    dialled = (
        Value(*each.span("number"), re.sub(r"\D", "", each["number"])) for each in _AROUND.dialled.finditer(text)
    )
    moments = [*moments_in(text, day_first=commas)]
    # um Viertel nach acht
    numerals = (n for n in numerals_in(text) if not any(n.start < it.start < n.end for it in moments))
    halves = (
        Value(one.start(), half.end(), "1.25" if half["quarter"] else "1.5", unit, spelled=True)
        for half in _AROUND.and_half.finditer(text)
        if (one := _AROUND.one_unit.search(text, max(0, half.start() - _BEFORE), half.start()))
        and (unit := unit_named(one["name"]))
    )
    found = [*parts, *moments, *halves, *phones, *dialled, *numerals, *hanzi.numerals_in(text), *_NUMBER.finditer(text)]
    yield from map(_in_whole, _joined(text, _in_order(text, found, commas=commas)))


def _in_whole(value: Value) -> Value:
    """``85 cents`` as 0.85 of what they are cents of."""
    if not value.unit.startswith("cents") or not _PLAIN.fullmatch(value.norm):
        return value
    return replace(value, norm=written(Fraction(value.norm) / 100))


def _in_order(text: str, found: Iterable[Value | Moment | Numeral | re.Match[str]], *, commas: bool) -> Iterator[Value]:
    end = 0
    for start, _, each in sorted(
        ((_digits_at(each), rank, each) for rank, each in enumerate(found)), key=lambda it: it[:2]
    ):
        if start < end:
            continue
        if isinstance(each, Value):
            values = [each]
        elif isinstance(each, Moment):
            at = _AROUND.at.search(text, max(end, each.start - _BEFORE), each.start) if ":" in each.norms[0] else None
            begin = at.start() if at else each.start
            values = [Value(begin, each.end, norm, spelled=text[each.start].islower()) for norm in each.norms]
        elif isinstance(each, Numeral):
            values = [value] if (value := _spelled(text, each)) else []
        elif each.re is _PHONE:
            values = [Value(each.start(), each.end(), re.sub(r"\D", "", each[0]))]
        else:
            first, *more = _numbers(text, each, commas=commas)
            values = [_signed(text, first), *more]
        end = max((value.end for value in values), default=end)
        yield from values


def _joined(text: str, values: Iterable[Value]) -> Iterator[Value]:
    """Yield the values; one and the rest of it are one: ``1 h 45 min``, ``7 euros 50``."""
    last: Value | None = None
    smallest = ""
    for value in values:
        unit = value.unit
        if last and last.unit in _HUNDREDTHS and unit in ("", last.unit) and _is_rest(text, last, value):
            unit = _HUNDREDTHS[last.unit]
        part = _part(smallest, unit) if last and unit and (last.norm.isdigit() or smallest != last.unit) else None
        if (
            last
            and part
            and _PLAIN.fullmatch(value.norm)
            and Fraction(value.norm) * part < 1
            and (gap := _AROUND.and_rest.fullmatch(text, last.end, max(last.end, value.start)))
            and (unit in OF_TIME or not gap["comma"])
        ):
            rest = Fraction(value.norm) * part * (_part(last.unit, smallest) or 1)
            counted, end = rated(last.unit, text, value.end)
            value = replace(last, end=end, norm=written(Fraction(last.norm) + rest), unit=counted)
        elif last:
            yield last
        last, smallest = value, unit
    if last:
        yield last


def _is_rest(text: str, last: Value, value: Value) -> bool:
    """Return whether a number behind an amount is its cents: ``7€50``, ``7 euros 50 le kilo``, not *5 euros 50 men*."""
    behind, gap = _GOES_ON.match(text, value.end), text[last.end : value.start].strip()
    if last.unit == "m" and (value.unit or not _HEIGHT.fullmatch(f"{last.norm}.{value.norm}")):
        return False
    return value.start < last.end or (
        behind is not None and (not behind["word"] or (gap in ("", "e", "y", "et") and behind["word"] in _LITTLE))
    )


def _part(unit: str, smaller: str) -> Fraction | None:
    """Return which part of a unit a smaller one is; nothing where it is none."""
    one, other = in_base(unit), in_base(smaller)
    if one and other and one[0] == other[0] and "/" not in unit:
        part = other[1] / one[1]
    else:
        part = Fraction(1, _REST.get((unit, smaller), 1))
    return part if part < 1 else None


def _digits_at(found: Value | Moment | Numeral | re.Match[str]) -> int:
    if isinstance(found, re.Match):
        return found.start("digits") if found.re is _NUMBER else found.start()
    return found.start


def _spelled(text: str, found: Numeral) -> Value | None:
    unit, end = ("", found.end) if found.is_ordinal else unit_behind(text, _behind_article(text, found.norm, found.end))
    end = end if unit else found.end
    value = _signed(text, _with_half(text, _times(Value(found.start, end, found.norm, unit, spelled=True))))
    return value if found.is_sure or unit or value.norm[0] in "-×" else None


def _behind_article(text: str, norm: str, end: int) -> int:
    """Return where the article behind a part ends: ``half a``, ``3/4 of an``."""
    article = _OF_A.match(text, end) if norm[:2] == "0." or "/" in norm else None
    return article.end() if article else end


def _with_half(text: str, value: Value) -> Value:
    """``dos kilos y medio``."""
    half = _AROUND.and_half.match(text, value.end) if value.unit and value.norm.isdigit() else None
    return replace(value, norm=f"{value.norm}.{25 if half['quarter'] else 5}", end=half.end()) if half else value


def _times(value: Value) -> Value:
    """``two times`` is ``twice``."""
    return replace(value, norm=f"×{value.norm}", unit="") if value.unit == "×" else value


def _signed(text: str, value: Value) -> Value:
    """Return the value with the minus that a word before or behind it gives it."""
    minus = _AROUND.minus.search(text, max(0, value.start - _BEFORE), value.start)
    if minus and (not minus["dutch"] or value.unit in _OF_DEGREES):
        return replace(value, start=minus.start(), norm=("±" if minus["either"] else "-") + value.norm)
    if below := _AROUND.below.match(text, value.end):
        return replace(value, end=below.end(), norm="-" + value.norm)
    return value


def _numbers(text: str, found: re.Match[str], *, commas: bool) -> list[Value]:
    """Return the number, or the two of a range; the unit is the last one's."""
    digits, start, end = found["digits"], found.start(), found.end("digits")
    money = (found["money"] or found["inner"] or "").strip(" .\u00a0")
    unit = unit_named(money) or money.lower()
    sign = (found["sign"] or "").strip().replace("−", "-").replace("–", "-").strip("+")
    if _RANGE.fullmatch(digits):
        first, second = (_plain(part, commas=commas) for part in digits.split("-"))
        middle = found.start("digits") + digits.index("-")
        return [Value(start, middle, sign + first, unit), _counted(text, found, Value(middle, end, second, unit))]
    named = _AROUND.named.search(text, max(0, start - _BEFORE), start) if _PLACE.fullmatch(digits) else None
    norm = (
        digits
        if named and not unit_named(named[1]) and not (commas and _GROUPED.fullmatch(digits))
        else _plain(digits, commas=commas)
    )
    if found["part"] and norm.isdigit() and len(norm) <= _MANY_DIGITS:
        norm, end = written(int(norm) + Fraction(found["part"])), found.end("part")
    elif _FRACTION.fullmatch(norm):
        norm = written(Fraction(norm))
    if found["release"]:
        return [Value(start, found.end("release"), sign + norm + found["release"].casefold())]
    if found["grade"]:
        return [Value(start, found.end("grade"), sign + norm + found["grade"])]
    if found["power"]:
        return [Value(start, found.end("power"), sign + norm, found["power"])]
    if found["ordinal"]:
        return [Value(start, found.end("ordinal"), sign + norm, unit)]
    return [_counted(text, found, Value(start, end, sign + norm, unit))]


def _counted(text: str, found: re.Match[str], value: Value) -> Value:
    """Return the value with what multiplies it and what it counts; other letters behind it are a part of it."""
    norm, unit, end, suffix = value.norm, value.unit, value.end, (found["suffix"] or "").casefold()
    scale, scaled = scale_behind(text, end)
    if (letter := _LETTER.match(text, end)) and (unit or letter["money"]):
        scale, scaled = OF_MONEY[letter["scale"].casefold()], letter.end("scale")
    elif suffix == "k":
        scale, scaled = 1_000, found.end()
    if scale > 1 and _DECIMAL.fullmatch(norm):
        number = norm.lstrip("-+±~≈<>≤≥")
        norm = norm.removesuffix(number) + format((Decimal(number) * scale).normalize(), "f")
        end = scaled
    elif suffix == "s":  # the 1980s
        return replace(value, norm=norm + suffix, end=found.end())
    behind, behind_end = unit_behind(text, _behind_article(text, norm, end))
    if not unit or same_unit(unit, behind):  # R$ 5 reais
        unit, end = unit or behind, behind_end if behind else end
    else:
        unit, end = rated(unit, text, end)
    if suffix and end < found.end():
        norm, end = norm + suffix, found.end()
    return _with_half(text, _times(replace(value, norm=norm, unit=unit, end=end)))


def _plain(digits: str, *, commas: bool) -> str:
    """Return a number without marks between thousands, with a point before its decimals."""
    decimal, thousands = (",", ".") if commas else (".", ",")
    bare = re.sub("['’٬\u00a0\u202f ]", "", digits)
    marks = re.sub(r"\d", "", bare)
    if not marks:
        return bare
    if "-" in marks:
        return bare.replace("-", "") if set(marks) == {"-"} and len(marks) > 1 else bare
    if ":" in marks or "/" in marks:
        return bare
    last = marks[-1]
    if len(marks) > 1 and len(set(marks)) == 1 and not _GROUPED.fullmatch(digits):
        return bare  # a version, or a date
    if len(set(marks)) == 2 and marks.count(last) == 1:
        decimal, thousands = last, marks[0]
    elif len(marks) > 1:
        return bare.replace(last, "")
    elif not re.fullmatch(r"\d{1,3}[.,]\d{3}", bare) or bare.startswith("0"):
        decimal, thousands = last, ""
    whole = bare.replace(thousands, "") if thousands else bare
    return format(Decimal(whole.replace(decimal, ".")).normalize(), "f")
